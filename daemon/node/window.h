/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows on demand: the last ops of given communicators, or those from one coll_seq to another, of
 * every local process of a job. Asked
 * for when something looks stuck, so it may cost more than a sample, but never more than one frame.
 *
 * Loop thread only.
 */
#pragma once

#include <stdint.h>

#include "daemon/process/process.h"
#include "proto/messages.h"

/*
 * Fills *ret; its arrays are the caller's (cw_window_fini()). Ops per window are cut so that the
 * reply fits one frame: the newest are kept, or, of a range of collectives, the first. 0 or
 * -ENOMEM.
 */
int cw_window_collect(struct cw_process *table, const struct cw_job_id *job,
		      const struct cw_msg_window_request *request, int64_t now_ns,
		      struct cw_msg_window_reply *ret);
void cw_window_fini(struct cw_msg_window_reply *reply);
