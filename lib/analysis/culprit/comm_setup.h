/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traits that all members of a comm should share, besides their calls. They are:
 *
 *  - the size of the comm;
 *  - the order in which NCCL launches the calls of a group;
 *  - the version of NCCL;
 *  - the variables that change how NCCL communicates.
 *
 * Except for the size in initialisation, a difference alone hangs no rank. So we compare traits
 * only if all members are in a call that does not end, and no other cause is known.
 *
 * Pure; O(members).
 */
#pragma once

#include "analysis/align/align.h"

/*
 * Sorts the members by the first trait in which they differ. ret->detail is MEMBERSHIP (a proof),
 * ORDER (of the group with the call `seq`), VERSION or ENVIRONMENT. CW_DETAIL_NONE = no difference
 * that could explain the hang. If there are nearly as many values as members, the values are meant
 * to differ. The sides carry `op`, and the largest side comes first. `ret` is allocated in `a`.
 * Returns 0 or -ENOMEM.
 */
int comm_setup_compare(const struct cw_snapshot *snap, uint32_t comm, uint64_t seq,
		       const struct cw_op *op, struct cw_arena *a, struct alignment *ret);
