/* SPDX-License-Identifier: Apache-2.0 */
#include "model/signature.h"

#include "model/snapshot.h"

static void keep_newest(struct cw_checkpoint two[2], const struct cw_checkpoint *c)
{
	if (c->coll_seq > two[0].coll_seq) {
		two[1] = two[0];
		two[0] = *c;
	} else if (c->coll_seq > two[1].coll_seq && c->coll_seq < two[0].coll_seq) {
		two[1] = *c;
	}
}

static void add_once(struct cw_checkpoint *v, size_t *n, const struct cw_checkpoint *c)
{
	for (size_t i = 0; i < *n; i++)
		if (v[i].coll_seq == c->coll_seq)
			return;
	if (c->coll_seq)
		v[(*n)++] = *c;
}

size_t cw_checkpoints_newest(const struct cw_checkpoint *kept, struct cw_checkpoint *ret)
{
	size_t n = 0;

	for (size_t level = 0; level < CW_CHECKPOINT_LEVELS; level++) {
		struct cw_checkpoint two[2] = { 0 };

		for (size_t i = level * CW_CHECKPOINTS_PER_LEVEL; i < CW_CHECKPOINTS_KEPT; i++)
			keep_newest(two, &kept[i]);
		add_once(ret, &n, &two[0]);
		add_once(ret, &n, &two[1]);
	}
	return n;
}
