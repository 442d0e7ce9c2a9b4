/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes the metrics in two ways: a UNIX socket that answers HTTP (GET /metrics), and a file for
 * node_exporter's textfile collector. We replace the file every 15 s and remove it at the end.
 * There is no TCP socket, because it would need authentication, which a scraper's proxy or
 * node_exporter already has.
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
	const char *socket_path; /* "" = none; the mode is 0660 */
	const char *group;       /* group of the socket, if the group exists; "" = none */
	const char *file_path;   /* "" = none */
	void (*collect)(struct cw_metrics *ret, void *user);
	void *user;
};

/* 0, or -errno with err set. */
int cw_metrics_output_new(const struct cw_metrics_output_config *config,
			  struct cw_metrics_output **ret, struct cw_err *err);
/* Removes the socket and the file. Takes NULL; returns NULL. */
struct cw_metrics_output *cw_metrics_output_free(struct cw_metrics_output *o);
