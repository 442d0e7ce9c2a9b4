/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Independent parts of a job: the trouble of one part does not depend on the others. A rank is in
 * the same part as the ranks that it waits for and the ranks that wait for it. The ranks of one
 * process are in one part, because they end and stop together. All ranks that wait for
 * communicators which can no longer be made are in one part, too. Each part has its own trouble,
 * with its own victims and culprits. If a wait reaches all ranks, as in a collective of the whole
 * job, the job is one part.
 *
 * Pure; O(edges of the graph), plus a sort of the ranks by process.
 */
#pragma once

#include <stdint.h>

#include "analysis/culprit/engine_context.h"

struct independent_groups {
	uint32_t *parent; /* per node of the graph: another node of its part, or the node itself */
};

/* Finds the parts. The array of *ret is allocated in `a`. Returns 0 or -ENOMEM. */
int independent_groups_init(const struct cw_snapshot *snap, const struct waitgraph *g,
			    struct cw_arena *a, struct independent_groups *ret);

/*
 * Returns the finding's part as one node of the part. CW_SNAP_NONE = no rank waits because of the
 * finding.
 */
uint32_t independent_groups_find(const struct independent_groups *p, const struct waitgraph *g,
				 const struct finding *f);
