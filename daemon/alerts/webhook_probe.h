/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether the webhook's server is reachable and its certificate is valid. Posts nothing. */
#pragma once

#include "common/err.h"

/* The system's resolver tries a second name server after 5 s. */
#define CW_WEBHOOK_PROBE_MS 10000

enum cw_webhook_probe {
	CW_WEBHOOK_PROBE_OK = 0,
	CW_WEBHOOK_PROBE_UNREACHABLE,
	CW_WEBHOOK_PROBE_TLS,
};

/*
 * Resolves the server's name, connects and, for https, performs the TLS handshake. Stores the
 * reason of a failure in err. Blocks for at most CW_WEBHOOK_PROBE_MS. With libcurl before 7.87 it
 * blocks as long as the system's resolver. Never call it from the daemon's loop.
 */
enum cw_webhook_probe cw_webhook_probe(const char *url, struct cw_err *err);
