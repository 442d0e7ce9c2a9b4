/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/colour.h"

uint32_t colour_even_size(const struct cw_snapshot *snap, uint32_t comm)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	uint64_t members = 0, groups = 0, parent = 0;

	if (!c->parent_id || !c->split_ordinal)
		return 0;
	for (uint32_t i = 0; i < snap->n_comms; i++) {
		const struct cw_snap_comm *o = &snap->comms[i];

		if (o->id == c->parent_id && !parent)
			parent = o->nranks;
		if (o->parent_id != c->parent_id || o->split_ordinal != c->split_ordinal ||
		    o->instance != c->instance)
			continue;
		members += o->nranks;
		groups++;
	}
	if (members != parent || members % groups || c->nranks <= members / groups)
		return 0;
	return (uint32_t)(members / groups);
}
