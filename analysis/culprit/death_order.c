/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/death_order.h"

#include <errno.h>

#define SURELY_BEFORE_NS (INT64_C(100) * 1000000)
#define SURELY_BEFORE_ELSEWHERE_NS (INT64_C(1) * 1000000000)

bool death_order_is_before(const struct cw_snap_rank *a, const struct cw_snap_rank *b)
{
	return b->ended_ns - a->ended_ns >=
	       (a->node == b->node ? SURELY_BEFORE_NS : SURELY_BEFORE_ELSEWHERE_NS);
}

/* The part of the job that the death matters to; CW_SNAP_NONE = it is none, or its instant is not
 * known. */
static uint32_t part_of(const struct scene *s, const struct apart *apart, const struct finding *f)
{
	if (f->verdict_class != CW_CLASS_PROCESS_DEAD || f->rank == CW_SNAP_NONE ||
	    !s->snap->ranks[f->rank].ended_ns)
		return CW_SNAP_NONE;
	return apart_of(apart, &s->g, f);
}

/* Somebody's signal ended it, and that one ended as well: what it died of came after. */
static bool was_sent_by(const struct cw_snap_rank *r, const struct cw_snap_rank *sender)
{
	return r->end_by == CW_END_BY_PROCESS && r->end_sender && r->node == sender->node &&
	       r->end_sender == sender->pid;
}

static bool has_sender_among(const struct scene *s, const struct apart *apart,
			     const struct finding *f)
{
	const struct cw_snap_rank *ranks = s->snap->ranks;

	for (uint32_t i = 0; i < s->n_findings; i++)
		if (part_of(s, apart, &s->findings[i]) == part_of(s, apart, f) &&
		    was_sent_by(&ranks[f->rank], &ranks[s->findings[i].rank]) &&
		    !death_order_is_before(&ranks[f->rank], &ranks[s->findings[i].rank]))
			return true;
	return false;
}

int death_order_mark(struct scene *s, const struct apart *apart)
{
	const struct cw_snap_rank *ranks = s->snap->ranks;
	uint32_t *earliest =
		cw_arena_new_array(&s->arena, uint32_t, (size_t)s->g.n_ranks + s->g.n_gates);

	if (!earliest)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->g.n_ranks + s->g.n_gates; i++)
		earliest[i] = CW_SNAP_NONE;
	for (uint32_t i = 0; i < s->n_findings; i++) {
		uint32_t part = part_of(s, apart, &s->findings[i]);
		uint32_t rank = s->findings[i].rank;

		if (part != CW_SNAP_NONE && (earliest[part] == CW_SNAP_NONE ||
					     ranks[rank].ended_ns < ranks[earliest[part]].ended_ns))
			earliest[part] = rank;
	}
	for (uint32_t i = 0; i < s->n_findings; i++) {
		struct finding *f = &s->findings[i];
		uint32_t part = part_of(s, apart, f);
		const struct cw_snap_rank *r, *first;

		if (part == CW_SNAP_NONE)
			continue;
		r = &ranks[f->rank];
		first = &ranks[earliest[part]];
		f->is_late = death_order_is_before(first, r) || was_sent_by(r, first) ||
			     (r == first && has_sender_among(s, apart, f));
	}
	return 0;
}
