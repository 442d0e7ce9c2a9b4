/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traits that all members of a comm should share besides their calls: its size, the order in which
 * NCCL launches the calls of a group, the version of NCCL, and the variables that change how NCCL
 * communicates. Except for the size in initialisation, a difference alone hangs no rank. So we
 * compare only if all members are in a call that does not end and nothing else explains that.
 *
 * Pure; O(members).
 */
#pragma once

#include "analysis/align/align.h"

/*
 * Sorts the members by the first trait in which they differ. The detail is MEMBERSHIP (a proof),
 * ORDER (of the group with the call `seq`), VERSION or ENVIRONMENT. The sides carry `op`, the
 * largest first. CW_DETAIL_NONE = no difference that could explain anything: nearly as many values
 * as members are meant to differ. `ret` is allocated in `a`. Returns 0 or -ENOMEM.
 */
int comm_setup_compare(const struct cw_snapshot *snap, uint32_t comm, uint64_t seq,
		       const struct cw_op *op, struct cw_arena *a, struct alignment *ret);
