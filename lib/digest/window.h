/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects windows on request. A window has the last ops of a communicator, or its ops between two
 * coll_seq. The reply has windows of every process of the job on this node. The leader requests
 * them when a job looks stuck. A window may therefore cost more than a sample, but never more than
 * one frame.
 *
 * Pure except for reading records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "digest/rank.h"
#include "proto/messages.h"

/*
 * Fills *ret; the caller owns its arrays (cw_window_fini()). Limits the ops per window so the reply
 * fits one frame: keeps the newest ops, or the first ops of a range of collectives. 0 or -ENOMEM.
 */
int cw_window_collect(const struct cw_digest_rank *ranks, uint32_t n_ranks,
		      const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret);
/*
 * A deadline for cw_window_collect_within(). We call is_over before each window. Once it returns
 * true, the remaining windows are empty.
 */
struct cw_window_time {
	bool (*is_over)(void *user);
	void *user;
};
int cw_window_collect_within(const struct cw_digest_rank *ranks, uint32_t n_ranks,
			     const struct cw_msg_window_request *request,
			     const struct cw_window_time *time, struct cw_msg_window_reply *ret);
void cw_window_fini(struct cw_msg_window_reply *reply);
