/* SPDX-License-Identifier: Apache-2.0 */
/* Queries the daemon over its control socket. All queries block, with a deadline. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

#define CW_CONTROL_SOCKET "/run/collwatch-control/control.sock"

/*
 * Returns the socket's path: --control if given, else COLLWATCH_CONTROL_SOCKET, else the default.
 */
const char *cw_control_path(const char *arg_path);

/*
 * Sends `verb` with args (an object, borrowed; NULL = none) and waits at most timeout_ms for the
 * answer.
 *
 * Returns 0 or -errno. On success *ret_json is a new reference to the answer's document, and
 * *ret_code is the exit status that the daemon suggests. After an error, err has the reason:
 * -ECONNREFUSED, -ENOENT: no daemon is running. -EREMOTEIO: the daemon answered with an error, and
 * err has its text. -ENODATA: the daemon has no such data, and err has its text. -ETIMEDOUT,
 * -EBADMSG: no answer in time, or an unreadable one.
 */
int cw_control_ask(const char *path, const char *verb, const json_t *args, int timeout_ms,
		   json_t **ret_json, uint32_t *ret_code, struct cw_err *err);

/* Time-out for a status that includes the answers of other nodes, in ms. */
#define CW_CONTROL_STATUS_MS 10000

/*
 * Queries the status, which has each job as its leader reports it. Parameters and result are those
 * of cw_control_ask().
 */
int cw_control_ask_status(const char *path, json_t **ret_json, uint32_t *ret_code,
			  struct cw_err *err);
