/* SPDX-License-Identifier: Apache-2.0 */
/* Queries the daemon over its control socket. Blocking, with a deadline. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

#define CW_CONTROL_SOCKET "/run/collwatch-control/control.sock"

/* --control if given, else COLLWATCH_CONTROL_SOCKET, else the default. */
const char *cw_control_path(const char *arg_path);

/*
 * Sends `verb` with args (an object, borrowed; NULL = none) and waits at most timeout_ms for the
 * answer. 0: *ret_json is a new reference to the answer's document, and *ret_code the exit status
 * that the daemon suggests. Else -errno with err set. -ECONNREFUSED and -ENOENT: no daemon is
 * running; -EREMOTEIO: it answered with an error, and err has its text; -ENODATA: it has no such
 * data, and err has its text; -ETIMEDOUT, -EBADMSG.
 */
int cw_control_ask(const char *path, const char *verb, const json_t *args, int timeout_ms,
		   json_t **ret_json, uint32_t *ret_code, struct cw_err *err);

/* Includes the answers of other nodes. */
#define CW_CONTROL_STATUS_MS 10000

/* Gets the status, with each job as its leader reports it; otherwise as cw_control_ask(). */
int cw_control_ask_status(const char *path, json_t **ret_json, uint32_t *ret_code,
			  struct cw_err *err);
