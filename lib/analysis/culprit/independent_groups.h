/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a job whose troubles are independent. A rank belongs to the same part as the ranks that
 * it waits for and that wait for it. So do the ranks of one process, which end and stop together,
 * and all ranks that wait for communicators which can no longer be made. Each part has its own
 * trouble, with its own victims and culprits. A wait that reaches all ranks, as a collective of the
 * whole job does, makes the job one part.
 *
 * Pure; O(edges of the graph), plus a sort of the ranks by process.
 */
#pragma once

#include <stdint.h>

#include "analysis/culprit/engine_context.h"

struct independent_groups {
	uint32_t *parent; /* per node of the graph: another node of its part, or itself */
};

/* Finds the parts. *ret is allocated in `a`. Returns 0 or -ENOMEM. */
int independent_groups_init(const struct cw_snapshot *snap, const struct waitgraph *g,
			    struct cw_arena *a, struct independent_groups *ret);

/*
 * Returns the finding's part, as one node of that part; CW_SNAP_NONE = no rank waits because of the
 * finding.
 */
uint32_t independent_groups_find(const struct independent_groups *p, const struct waitgraph *g,
				 const struct finding *f);
