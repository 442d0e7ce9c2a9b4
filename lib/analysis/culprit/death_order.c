/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/death_order.h"

#include <errno.h>
#include <signal.h>

#include "model/death.h"
#include "model/nccl_result.h"
#include "record/record_layout.h"

#define SURELY_BEFORE_NS (INT64_C(100) * 1000000)
#define SURELY_BEFORE_ELSEWHERE_NS (INT64_C(1) * 1000000000)
/*
 * The kernel's word is of the moment at which an end begins, a pidfd's of that at which it is over:
 * with gigabytes of memory and a GPU to be given back, seconds later.
 */
#define SURELY_BEFORE_UNALIKE_NS (INT64_C(5) * 1000000000)

/* When a rank's part was over, and whether that is the word of a pidfd alone. */
struct end {
	const struct cw_snap_rank *r;
	int64_t ns; /* 0 = not known */
	bool is_late_word;
};

static struct end end_of_rank(const struct cw_snap_rank *r)
{
	return (struct end){ .r = r,
			     .ns = r->ended_ns,
			     .is_late_word = r->end_by == CW_END_BY_UNKNOWN };
}

static struct end end_of_call(const struct cw_snap_rank *r, int64_t ns)
{
	return (struct end){ .r = r, .ns = ns };
}

static bool is_before(const struct end *a, const struct end *b)
{
	int64_t surely_ns =
		a->r->node == b->r->node ? SURELY_BEFORE_NS : SURELY_BEFORE_ELSEWHERE_NS;

	if (a->is_late_word != b->is_late_word)
		surely_ns = SURELY_BEFORE_UNALIKE_NS;
	/* Instants are untrusted: unsigned, they cannot overflow. */
	return b->ns > a->ns && (uint64_t)b->ns - (uint64_t)a->ns >= (uint64_t)surely_ns;
}

bool death_order_is_before(const struct cw_snap_rank *a, const struct cw_snap_rank *b)
{
	struct end first = end_of_rank(a), second = end_of_rank(b);

	return is_before(&first, &second);
}

static bool failed_before(const struct cw_snap_rank *a, int64_t failed_ns,
			  const struct cw_snap_rank *b)
{
	struct end first = end_of_call(a, failed_ns), second = end_of_rank(b);

	return failed_ns && is_before(&first, &second);
}

/* Of a comm's members, the one that ended first without an error of NCCL's before. */
struct first_death {
	bool is_known;
	uint32_t rank; /* CW_SNAP_NONE = none ended */
};

static uint32_t first_death(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snapshot *snap = s->snap;
	const struct cw_snap_comm *c = &snap->comms[gate->comm];
	struct first_death *first = &s->first_deaths[gate->comm];
	struct failed_call ignored;

	if (first->is_known)
		return first->rank;
	*first = (struct first_death){ .is_known = true, .rank = CW_SNAP_NONE };
	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t rank = c->members[m].rank;

		if (rank == CW_SNAP_NONE || !cw_liveness_is_dead(snap->ranks[rank].liveness) ||
		    !snap->ranks[rank].ended_ns || failed_call_at(snap, gate, m, &ignored))
			continue;
		if (first->rank == CW_SNAP_NONE ||
		    snap->ranks[rank].ended_ns < snap->ranks[first->rank].ended_ns)
			first->rank = rank;
	}
	return first->rank;
}

/* What a program does wrong by itself; all else NCCL may report where a peer is gone. */
static bool is_own_result(int32_t result)
{
	return result == CW_NCCL_INVALID_ARGUMENT || result == CW_NCCL_INVALID_USAGE ||
	       result == CW_NCCL_UNHANDLED_CUDA_ERROR;
}

bool death_order_is_own_failure(const struct engine_context *s, uint32_t gate, uint32_t rank,
				const struct failed_call *call)
{
	uint32_t dead;

	if (call->result == CW_NCCL_REMOTE_ERROR || s->has_lost_peer[rank])
		return false;
	dead = is_own_result(call->result) ? CW_SNAP_NONE : first_death(s, &s->g.gates[gate]);
	return dead == CW_SNAP_NONE ||
	       cw_snap_rank_shares_process(&s->snap->ranks[dead], &s->snap->ranks[rank]) ||
	       failed_before(&s->snap->ranks[rank], call->ns, &s->snap->ranks[dead]);
}

static bool is_end(const struct finding *f)
{
	return (f->verdict_class == CW_CLASS_PROCESS_DEAD || f->has_failed) &&
	       f->rank != CW_SNAP_NONE;
}

static struct end end_of(const struct engine_context *s, const struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[f->rank];

	return f->has_failed && f->failed_ns ? end_of_call(r, f->failed_ns) : end_of_rank(r);
}

/*
 * The part of the job that the end matters to; CW_SNAP_NONE = it is none, or its instant is not
 * known.
 */
static uint32_t part_of(const struct engine_context *s,
			const struct independent_groups *independent_groups,
			const struct finding *f)
{
	if (!is_end(f) || !end_of(s, f).ns)
		return CW_SNAP_NONE;
	return independent_groups_find(independent_groups, &s->g, f);
}

/* Somebody's signal ended it, and that one ended as well: what it died of came after. */
static bool was_sent_by(const struct cw_snap_rank *r, const struct cw_snap_rank *sender)
{
	return r->end_by == CW_END_BY_PROCESS && r->end_sender && r->node == sender->node &&
	       r->end_sender == sender->pid;
}

static bool has_sender_among(const struct engine_context *s,
			     const struct independent_groups *independent_groups,
			     const struct finding *f)
{
	const struct cw_snap_rank *ranks = s->snap->ranks;

	for (uint32_t i = 0; i < s->n_findings; i++) {
		const struct finding *o = &s->findings[i];
		struct end own, other;

		if (part_of(s, independent_groups, o) != part_of(s, independent_groups, f) ||
		    !was_sent_by(&ranks[f->rank], &ranks[o->rank]))
			continue;
		own = end_of(s, f);
		other = end_of(s, o);
		if (!is_before(&own, &other))
			return true;
	}
	return false;
}

/*
 * NCCL had told it that a peer is gone, on a communicator that it still had. A system error of a
 * call may be its own: no descriptor, no shared memory.
 */
static bool knows_of_loss(const struct cw_snap_member *m)
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
int death_order_note_losses(struct engine_context *s)
{
	const struct cw_snapshot *snap = s->snap;

	s->has_lost_peer = cw_arena_new_array(&s->arena, bool, (size_t)snap->n_ranks + 1);
	s->first_deaths = cw_arena_new_array(&s->arena, struct first_death, snap->n_comms);
	if (!s->has_lost_peer || !s->first_deaths)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank != CW_SNAP_NONE && knows_of_loss(member) &&
			    !is_own_fault(&snap->ranks[member->rank]))
				s->has_lost_peer[member->rank] = true;
		}
	share_losses(snap, s->has_lost_peer);
	return 0;
}

/* It may have followed from a loss: so NCCL had told the rank, or so its call's error reads. */
static bool may_follow(const struct engine_context *s, const struct finding *f)
{
	return s->has_lost_peer[f->rank] || (f->has_failed && f->is_late);
}

/*
 * Of each part the first to end, or with `earliest`, of those that time does not tell from it, the
 * first that knew of no lost peer. Findings by part; NULL = none.
 */
static void find_first(const struct engine_context *s,
		       const struct independent_groups *independent_groups,
		       const struct finding **earliest, const struct finding **first)
{
	for (uint32_t i = 0; i < s->n_findings; i++) {
		const struct finding *f = &s->findings[i];
		uint32_t part = part_of(s, independent_groups, f);
		struct end end, other;

		if (part == CW_SNAP_NONE)
			continue;
		end = end_of(s, f);
		if (earliest) {
			other = end_of(s, earliest[part]);
			if (may_follow(s, f) || is_before(&other, &end))
				continue;
		}
		if (first[part])
			other = end_of(s, first[part]);
		if (!first[part] || end.ns < other.ns)
			first[part] = f;
	}
}

int death_order_mark(struct engine_context *s, const struct independent_groups *independent_groups)
{
	size_t n_parts = (size_t)s->g.n_ranks + s->g.n_gates;
	const struct finding **earliest =
		cw_arena_new_array(&s->arena, const struct finding *, n_parts);
	const struct finding **own = cw_arena_new_array(&s->arena, const struct finding *, n_parts);

	if (!earliest || !own)
		return -ENOMEM;
	find_first(s, independent_groups, NULL, earliest);
	find_first(s, independent_groups, earliest, own);
	for (uint32_t i = 0; i < s->n_findings; i++) {
		struct finding *f = &s->findings[i];
		uint32_t part = part_of(s, independent_groups, f);
		const struct finding *first;
		const struct cw_snap_rank *r;
		struct end end, other;

		if (part == CW_SNAP_NONE)
			continue;
		r = &s->snap->ranks[f->rank];
		first = own[part] ? own[part] : earliest[part];
		end = end_of(s, f);
		other = end_of(s, first);
		f->is_late = f->is_late || is_before(&other, &end) || was_sent_by(r, other.r) ||
			     (may_follow(s, f) && own[part]) ||
			     (f == first && has_sender_among(s, independent_groups, f));
	}
	return 0;
}
