/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration file, and the file with the webhook's headers that it names, without
 * blocking. A file may be on a server that does not answer. So a child with a deadline reads both,
 * and only its pipe is open in it. The parser's leftovers in memory, including parts of
 * webhook_url, end with the child.
 *
 * Loop thread only; only cw_config_reader_free() blocks, for 200 ms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/config/config.h"

struct event_base;
struct cw_config_reader;

/* The deadline of the child. Reading a local file takes milliseconds. */
#define CW_CONFIG_READ_MS 10000u

struct cw_config_source {
	const char *path;    /* borrowed until the callback */
	bool may_be_missing; /* a missing file means the defaults */
	uint32_t within_ms;
};

/*
 * The callee takes config. It is NULL on failure; r and err then have the reason, as in
 * cw_config_load().
 */
typedef void (*cw_config_read_fn)(struct cw_config *config, int r, const struct cw_err *err,
				  void *user);

/* 0 or -ENOMEM. */
int cw_config_reader_new(struct event_base *base, struct cw_config_reader **ret);
/* Takes NULL; returns NULL. No callback comes afterwards. */
struct cw_config_reader *cw_config_reader_free(struct cw_config_reader *reader);

/*
 * Starts to read. 0: the loop calls fn once. -EBUSY: another read is in progress, or an earlier one
 * hangs in the kernel. err is set for this and any other -errno.
 */
int cw_config_reader_start(struct cw_config_reader *reader, const struct cw_config_source *source,
			   cw_config_read_fn fn, void *user, struct cw_err *err);
