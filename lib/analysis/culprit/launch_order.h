/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order NCCL launches the calls of a group. It sorts them by size, so the order in which
 * they were made does not matter to it, but among calls of about one size.
 *
 * Pure; bounded.
 */
#pragma once

#include "model/snapshot.h"

/*
 * A number for the order of the member's group with that coll_seq: members that made the same calls
 * and have the same number launch them in the same order. 0 = not known, or there is no such group.
 */
uint64_t launch_order_of(const struct cw_snap_comm *c, const struct cw_snap_member *m,
			 uint64_t seq);
