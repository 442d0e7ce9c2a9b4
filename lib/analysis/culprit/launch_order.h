/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which NCCL launches the calls of a group. NCCL sorts the calls by size. So the
 * program's order matters only among calls of about the same size.
 *
 * Pure; bounded.
 */
#pragma once

#include "model/snapshot.h"

/*
 * Returns a number for the launch order of the member's group that contains coll_seq `seq`. If two
 * members made the same calls and have the same number, they launch these calls in the same order.
 * 0 = not known, or no such group.
 */
uint64_t launch_order_of(const struct cw_snap_comm *c, const struct cw_snap_member *m,
			 uint64_t seq);
