/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a configuration file, and the one with the webhook's headers that it names, without waiting
 * for them: a child does, which has nothing open but its pipe and a deadline, because a file may
 * lie on a server that does not answer. What its parser leaves behind in memory, parts of
 * webhook_url too, ends with it.
 *
 * Loop thread only; nothing blocks but cw_config_reader_free(), for 200 ms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/config/config.h"

struct event_base;
struct cw_config_reader;

/* A local file takes milliseconds. */
#define CW_CONFIG_READ_MS 10000u

struct cw_config_source {
	const char *path;    /* borrowed until the callback */
	bool may_be_missing; /* then there are only the defaults */
	uint32_t within_ms;
};

/* Takes config, which is NULL where it could not be had: r and err say why, as cw_config_load(). */
typedef void (*cw_config_read_fn)(struct cw_config *config, int r, const struct cw_err *err,
				  void *user);

/* 0 or -ENOMEM. */
int cw_config_reader_new(struct event_base *base, struct cw_config_reader **ret);
/* Takes NULL; returns NULL. Nobody is called back any more. */
struct cw_config_reader *cw_config_reader_free(struct cw_config_reader *reader);

/*
 * 0: fn is called once, from the loop. -EBUSY: a reading is under way, or an earlier one hangs in
 * the kernel; or another -errno, with err set.
 */
int cw_config_reader_start(struct cw_config_reader *reader, const struct cw_config_source *source,
			   cw_config_read_fn fn, void *user, struct cw_err *err);
