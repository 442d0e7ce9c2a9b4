/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which troubles of one job have nothing to do with each other. Whoever waits for somebody, or is
 * waited for, belongs with them, whatever the direction; so do the ranks of one process, which end
 * and stop together, and all that wait in makings of communicators to which nobody can come. What
 * is left apart then is another trouble, with victims and culprits of its own. A wait that reaches
 * all ranks (a collective of the whole job) makes one of all.
 *
 * Pure; O(edges of the graph), and ranks sorted by process where one has several.
 */
#pragma once

#include <stdint.h>

#include "analysis/culprit/engine_context.h"

struct independent_groups {
	uint32_t *parent; /* per node of the graph: another of its part, or itself */
};

/* Returns 0 or -ENOMEM. */
int independent_groups_init(const struct cw_snapshot *snap, const struct waitgraph *g,
			    struct cw_arena *a, struct independent_groups *ret);

/* The part the finding is of, as one of its nodes; CW_SNAP_NONE: nobody waits because of it. */
uint32_t independent_groups_find(const struct independent_groups *p, const struct waitgraph *g,
				 const struct finding *f);
