/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server that receives the demo's alerts, as a site's own server would. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

struct event_base;
struct demo_webhook;

/* Called for each alert that a daemon posts. Borrows incident until the callback returns. */
typedef void (*demo_webhook_fn)(const json_t *incident, void *user);

/*
 * Listens on listen_fd; -1 = on a free port of loopback. Takes ownership of listen_fd, also after
 * an error.
 */
int demo_webhook_new(struct event_base *base, int listen_fd, demo_webhook_fn on_alert, void *user,
		     struct demo_webhook **ret, struct cw_err *err);
/* Accepts NULL and returns NULL. */
struct demo_webhook *demo_webhook_free(struct demo_webhook *webhook);

uint16_t demo_webhook_port(const struct demo_webhook *webhook);
