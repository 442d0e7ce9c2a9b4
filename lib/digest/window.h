/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows on demand: the last ops of given communicators, or those from one coll_seq to another, of
 * every process of a job on a node. Asked for when something looks stuck, so it may cost more than
 * a sample, but never more than one frame.
 *
 * Pure but for reading records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "digest/rank.h"
#include "proto/messages.h"

/*
 * Fills *ret; its arrays are the caller's (cw_window_fini()). Ops per window are cut so that the
 * reply fits one frame: the newest are kept, or, of a range of collectives, the first. 0 or
 * -ENOMEM.
 */
int cw_window_collect(const struct cw_digest_rank *ranks, uint32_t n_ranks,
		      const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret);
/*
 * The same, while there is time; is_over: asked before each window, which comes back empty then.
 */
struct cw_window_time {
	bool (*is_over)(void *user);
	void *user;
};
int cw_window_collect_within(const struct cw_digest_rank *ranks, uint32_t n_ranks,
			     const struct cw_msg_window_request *request,
			     const struct cw_window_time *time, struct cw_msg_window_reply *ret);
void cw_window_fini(struct cw_msg_window_reply *reply);
