/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes the metrics in two ways. A UNIX socket answers HTTP (GET /metrics), and a file serves
 * node_exporter's textfile collector. We replace the file every 15 s, and remove it when the daemon
 * ends. There is no TCP socket, because it would need authentication. A scraper's proxy or
 * node_exporter already has authentication.
 *
 * Loop thread only; writing the file may wait for its disk.
 */
#pragma once

#include "common/err.h"
#include "daemon/metrics/metrics.h"

struct event_base;
struct cw_metrics_output;

#define CW_METRICS_FILE_EVERY_S 15

struct cw_metrics_output_config {
	struct event_base *base;
	const struct cw_clock *clock;
	const char *socket_path; /* "" = no socket; its mode is 0660 */
	/* Group of the socket; "" or an unknown group = the daemon's own. */
	const char *group;
	const char *file_path; /* "" = no file */
	void (*collect)(struct cw_metrics *ret, void *user);
	void *user;
};

/* Returns 0, or -errno with err set. */
int cw_metrics_output_new(const struct cw_metrics_output_config *config,
			  struct cw_metrics_output **ret, struct cw_err *err);
/* Removes the socket and the file. Takes NULL; returns NULL. */
struct cw_metrics_output *cw_metrics_output_free(struct cw_metrics_output *o);
