/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration file without blocking. Also reads the file with the webhook's headers that
 * the configuration names. A file may be on a server that does not answer, so a child with a
 * deadline reads both. The child has only its pipe open. The parser leaves parts of webhook_url in
 * memory, and these end with the child.
 *
 * Loop thread only. Only cw_config_reader_free() blocks, for up to 200 ms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/config/config.h"

struct event_base;
struct cw_config_reader;
struct cw_fork_server;

/* The deadline of the child. Reading a local file takes only milliseconds. */
#define CW_CONFIG_READ_MS 10000u

struct cw_config_source {
	const char *path;    /* borrowed until the callback */
	bool may_be_missing; /* a missing file means the defaults */
	uint32_t within_ms;
};

/*
 * Receives the configuration, which the callee then owns. config: NULL = failure; r and err then
 * have the values of cw_config_load().
 */
typedef void (*cw_config_read_fn)(struct cw_config *config, int r, const struct cw_err *err,
				  void *user);

/*
 * Reads the files as a job of the fork server. fd is the job's end of the pair. Returns the exit
 * status.
 */
int cw_config_reader_child(int fd);

/*
 * forks: a server with the job above, which may read files that this process may not; NULL = the
 * child is a fork of this process. Returns 0 or -ENOMEM.
 */
int cw_config_reader_new(struct event_base *base, struct cw_fork_server *forks,
			 struct cw_config_reader **ret);
/* Ends a read in progress. No callback follows. Takes NULL; returns NULL. */
struct cw_config_reader *cw_config_reader_free(struct cw_config_reader *reader);

/*
 * Starts to read. Returns 0, or -errno with err set; after 0 the loop calls fn once. -EBUSY:
 * another read is in progress, or the child of an earlier read hangs in the kernel.
 */
int cw_config_reader_start(struct cw_config_reader *reader, const struct cw_config_source *source,
			   cw_config_read_fn fn, void *user, struct cw_err *err);
