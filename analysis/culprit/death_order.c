/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/death_order.h"

#include <errno.h>

#include "model/death.h"

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

/* Had NCCL told it that a peer is gone? Then it need not have ended by its own fault. */
static void note_lost_peers(const struct scene *s, bool *has_lost_peer)
{
	const struct cw_snapshot *snap = s->snap;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank != CW_SNAP_NONE &&
			    cw_result_is_lost_peer(member->async_error ? member->async_error
								       : member->last_result))
				has_lost_peer[member->rank] = true;
		}
}

/*
 * Of each part the first to end, or with has_lost_peer, of those that time does not tell from it,
 * the first that knew of no lost peer.
 */
static void find_first(const struct scene *s, const struct apart *apart, const bool *has_lost_peer,
		       const uint32_t *earliest, uint32_t *first)
{
	const struct cw_snap_rank *ranks = s->snap->ranks;

	for (uint32_t i = 0; i < s->n_findings; i++) {
		uint32_t part = part_of(s, apart, &s->findings[i]);
		uint32_t rank = s->findings[i].rank;

		if (part == CW_SNAP_NONE ||
		    (earliest && (has_lost_peer[rank] ||
				  death_order_is_before(&ranks[earliest[part]], &ranks[rank]))))
			continue;
		if (first[part] == CW_SNAP_NONE ||
		    ranks[rank].ended_ns < ranks[first[part]].ended_ns)
			first[part] = rank;
	}
}

int death_order_mark(struct scene *s, const struct apart *apart)
{
	const struct cw_snap_rank *ranks = s->snap->ranks;
	size_t n_parts = (size_t)s->g.n_ranks + s->g.n_gates;
	uint32_t *earliest = cw_arena_new_array(&s->arena, uint32_t, n_parts);
	uint32_t *own = cw_arena_new_array(&s->arena, uint32_t, n_parts);
	bool *has_lost_peer = cw_arena_new_array(&s->arena, bool, (size_t)s->g.n_ranks + 1);

	if (!earliest || !own || !has_lost_peer)
		return -ENOMEM;
	for (size_t i = 0; i < n_parts; i++)
		earliest[i] = own[i] = CW_SNAP_NONE;
	note_lost_peers(s, has_lost_peer);
	find_first(s, apart, has_lost_peer, NULL, earliest);
	find_first(s, apart, has_lost_peer, earliest, own);
	for (uint32_t i = 0; i < s->n_findings; i++) {
		struct finding *f = &s->findings[i];
		uint32_t part = part_of(s, apart, f);
		const struct cw_snap_rank *r, *first;

		if (part == CW_SNAP_NONE)
			continue;
		r = &ranks[f->rank];
		first = &ranks[own[part] == CW_SNAP_NONE ? earliest[part] : own[part]];
		f->is_late = death_order_is_before(first, r) || was_sent_by(r, first) ||
			     (has_lost_peer[f->rank] && own[part] != CW_SNAP_NONE) ||
			     (r == first && has_sender_among(s, apart, f));
	}
	return 0;
}
