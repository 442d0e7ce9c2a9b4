/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a member's rolling hash, kept as agents and told as daemons do (record_ops.c). */
#include "model/signature.h"
#include "suite/cluster/cluster_state.h"

void checkpoint_note(struct member *m, uint64_t before)
{
	int slot = cw_checkpoint_slot(before, m->returned);

	if (slot >= 0)
		m->checkpoints[slot] =
			(struct cw_checkpoint){ .coll_seq = m->returned, .hash = m->hash };
}

static void keep_newest(struct cw_checkpoint two[2], const struct cw_checkpoint *c)
{
	if (c->coll_seq > two[0].coll_seq) {
		two[1] = two[0];
		two[0] = *c;
	} else if (c->coll_seq > two[1].coll_seq && c->coll_seq < two[0].coll_seq) {
		two[1] = *c;
	}
}

static void add_once(struct cw_checkpoint *v, uint32_t *n, const struct cw_checkpoint *c)
{
	for (uint32_t i = 0; i < *n; i++)
		if (v[i].coll_seq == c->coll_seq)
			return;
	if (c->coll_seq)
		v[(*n)++] = *c;
}

/* Of each level and those above it the newest two. */
void checkpoint_view(const struct member *m, struct cw_checkpoint ret[CW_SNAP_CHECKPOINTS])
{
	uint32_t n = 0;

	for (uint32_t level = 0; level < CW_CHECKPOINT_LEVELS; level++) {
		struct cw_checkpoint two[2] = { 0 };

		for (uint32_t i = level * CW_CHECKPOINTS_PER_LEVEL; i < CW_REC_CHECKPOINTS; i++)
			keep_newest(two, &m->checkpoints[i]);
		add_once(ret, &n, &two[0]);
		add_once(ret, &n, &two[1]);
	}
}
