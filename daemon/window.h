/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows on demand: the last ops of given communicators, of every local process of a route. Asked
 * for when something looks stuck, so it may cost more than a sample, but never more than one frame.
 *
 * Loop thread only.
 */
#pragma once

#include <stdint.h>

#include "daemon/process.h"
#include "proto/messages.h"

/*
 * Fills *ret; its arrays are the caller's (cw_window_fini()). Ops per window are cut, newest kept,
 * so that the reply fits one frame. 0 or -ENOMEM.
 */
int cw_window_collect(struct cw_process *table, const struct cw_msg_window_request *request,
		      int64_t now_ns, struct cw_msg_window_reply *ret);
void cw_window_fini(struct cw_msg_window_reply *reply);
