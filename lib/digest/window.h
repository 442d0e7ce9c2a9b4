/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects windows on request. A window has the last ops of a communicator, or its ops between two
 * coll_seq. The reply has windows of every process of the job on this node. The leader requests
 * windows only when a job looks stuck. A window may therefore cost more than a sample, but a reply
 * is never larger than one frame.
 *
 * Pure except for reads of records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "digest/rank.h"
#include "proto/messages.h"

/*
 * Collects the windows of a reply. The caller owns the arrays in *ret (cw_window_fini()). A limit
 * of ops per window makes the reply fit one frame. We omit the oldest ops, or of a range of
 * collectives the last ones. Returns 0 or -ENOMEM.
 */
int cw_window_collect(const struct cw_digest_rank *ranks, uint32_t n_ranks,
		      const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret);
/*
 * A deadline for cw_window_collect_within(). We call is_over before each window. After it has
 * returned true, the remaining windows stay empty.
 */
struct cw_window_time {
	bool (*is_over)(void *user);
	void *user;
};
int cw_window_collect_within(const struct cw_digest_rank *ranks, uint32_t n_ranks,
			     const struct cw_msg_window_request *request,
			     const struct cw_window_time *time, struct cw_msg_window_reply *ret);
void cw_window_fini(struct cw_msg_window_reply *reply);
