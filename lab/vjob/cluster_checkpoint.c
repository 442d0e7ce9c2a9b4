/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of a member's rolling hash. We make them as agents do, and report them as daemons do.
 */
#include "lab/vjob/cluster_state.h"
#include "model/signature.h"

void checkpoint_note(struct member *m, uint64_t before)
{
	int slot = cw_checkpoint_slot(before, m->returned);

	if (slot >= 0)
		m->checkpoints[slot] =
			(struct cw_checkpoint){ .coll_seq = m->returned, .hash = m->hash };
}

void checkpoint_view(const struct member *m, struct cw_checkpoint ret[CW_SNAP_CHECKPOINTS])
{
	/* Entries without a checkpoint stay empty. */
	(void)cw_checkpoints_newest(m->checkpoints, ret);
}
