/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/death_order.h"

#include <errno.h>
#include <signal.h>

#include "model/death.h"
#include "record/record_layout.h"

#define SURELY_BEFORE_NS (INT64_C(100) * 1000000)
#define SURELY_BEFORE_ELSEWHERE_NS (INT64_C(1) * 1000000000)
/*
 * The kernel's word is of the moment at which an end begins, a pidfd's of that at which it is over:
 * with gigabytes of memory and a GPU to be given back, seconds later.
 */
#define SURELY_BEFORE_UNALIKE_NS (INT64_C(5) * 1000000000)

bool death_order_is_before(const struct cw_snap_rank *a, const struct cw_snap_rank *b)
{
	int64_t surely_ns = a->node == b->node ? SURELY_BEFORE_NS : SURELY_BEFORE_ELSEWHERE_NS;

	if ((a->end_by == CW_END_BY_UNKNOWN) != (b->end_by == CW_END_BY_UNKNOWN))
		surely_ns = SURELY_BEFORE_UNALIKE_NS;
	return b->ended_ns - a->ended_ns >= surely_ns;
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

/*
 * NCCL had told it that a peer is gone, on a communicator that it still had. A system error of a
 * call may be its own: no descriptor, no shared memory.
 */
static bool is_told_of_loss(const struct cw_snap_member *m)
{
	if (m->state == CW_COMM_ABORTED || m->state == CW_COMM_DESTROYED ||
	    m->state == CW_COMM_REVOKED || m->state == CW_COMM_FAILED)
		return false;
	return cw_result_is_lost_peer(m->async_error) || m->last_result == CW_NCCL_REMOTE_ERROR;
}

/* A fault, or memory that ran out, follows from nobody's loss. */
static bool is_own_fault(const struct cw_snap_rank *r)
{
	const struct cw_ending end = { .liveness = r->liveness,
				       .exit_code = r->exit_code,
				       .term_signal = r->term_signal };

	return r->flags & CW_RANKF_OOM_KILLED ||
	       (cw_ending_is_fault(&end) && r->term_signal != SIGABRT);
}

/* What one rank of a process is told, its process is. */
static void share_losses(const struct cw_snapshot *snap, bool *has_lost_peer)
{
	for (uint32_t i = 1; i < snap->n_ranks; i++)
		if (has_lost_peer[i - 1] &&
		    cw_snap_rank_shares_process(&snap->ranks[i - 1], &snap->ranks[i]))
			has_lost_peer[i] = true;
	for (uint32_t i = snap->n_ranks; i-- > 1;)
		if (has_lost_peer[i] &&
		    cw_snap_rank_shares_process(&snap->ranks[i - 1], &snap->ranks[i]))
			has_lost_peer[i - 1] = true;
}

/* Who had lost a peer need not have ended by its own fault. */
static void note_lost_peers(const struct scene *s, bool *has_lost_peer)
{
	const struct cw_snapshot *snap = s->snap;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank != CW_SNAP_NONE && is_told_of_loss(member) &&
			    !is_own_fault(&snap->ranks[member->rank]))
				has_lost_peer[member->rank] = true;
		}
	share_losses(snap, has_lost_peer);
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
