/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all members of a comm should have in common besides their calls: its size, the order in
 * which NCCL launches the calls of a group, the version of NCCL, and the variables that change how
 * NCCL communicates. A difference hangs nobody by itself (but in the making of a comm), so it is
 * looked for only where a call does not end though everybody is in it and nothing else explains
 * that.
 *
 * Pure; O(members).
 */
#pragma once

#include "analysis/align/align.h"

/*
 * Sorts the members by the first of these in which they differ: detail is "membership" (a proof),
 * "order" (of the group that the call `seq` is in), "version" or "environment"; sides carry `op`,
 * largest first. detail "" = no difference that could explain anything: where values are nearly as
 * many as members, they are meant to differ. Returns 0 or -ENOMEM.
 */
int comm_setup_compare(const struct cw_snapshot *snap, uint32_t comm, uint64_t seq,
		       const struct cw_op *op, struct cw_arena *a, struct alignment *ret);
