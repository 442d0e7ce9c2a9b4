/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/death_order.h"

#include <errno.h>
#include <signal.h>

#include "model/death.h"
#include "model/nccl_result.h"
#include "record/record_layout.h"

/* If one end is this much earlier than another end on the same node, it came surely first. */
#define SURELY_BEFORE_NS (INT64_C(100) * 1000000)
/* The limit for two ends on different nodes, whose clocks differ. */
#define SURELY_BEFORE_ELSEWHERE_NS (INT64_C(1) * 1000000000)
/*
 * The limit if the kernel's events date one end and a pidfd dates the other. The kernel dates the
 * beginning of an end, and a pidfd its completion. If the kernel has to release gigabytes of memory
 * and a GPU, the completion is seconds later.
 */
#define SURELY_BEFORE_UNALIKE_NS (INT64_C(5) * 1000000000)

/* The end of a rank's part, and whether only a pidfd dates it. */
struct end {
	const struct cw_snap_rank *r;
	int64_t ns; /* time of the end; 0 = not known */
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

/* True if end `a` came surely before end `b`. */
static bool is_before(const struct end *a, const struct end *b)
{
	int64_t surely_ns =
		a->r->node == b->r->node ? SURELY_BEFORE_NS : SURELY_BEFORE_ELSEWHERE_NS;

	if (a->is_late_word != b->is_late_word)
		surely_ns = SURELY_BEFORE_UNALIKE_NS;
	/* Times are untrusted, and unsigned differences cannot overflow. */
	return b->ns > a->ns && (uint64_t)b->ns - (uint64_t)a->ns >= (uint64_t)surely_ns;
}

bool death_order_is_before(const struct cw_snap_rank *a, const struct cw_snap_rank *b)
{
	struct end first = end_of_rank(a), second = end_of_rank(b);

	return is_before(&first, &second);
}

/*
 * The member of a comm that ended first. A member with an earlier error from NCCL does not count.
 */
struct first_death {
	bool is_known;
	uint32_t rank; /* CW_SNAP_NONE = no member ended */
};

/* Returns the first rank that ended in the gate's comm, and stores it for the next call. */
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

bool death_order_is_own_failure(const struct engine_context *s, uint32_t gate, uint32_t rank,
				const struct failed_call *call)
{
	const struct cw_snap_rank *ranks = s->snap->ranks;
	struct end failure = end_of_call(&ranks[rank], call->ns), death;
	uint32_t dead;

	if (call->result == CW_NCCL_REMOTE_ERROR || s->has_lost_peer[rank])
		return false;
	/*
	 * The program itself causes these results. NCCL may return any other result after a peer's
	 * end.
	 */
	if (call->result == CW_NCCL_INVALID_ARGUMENT || call->result == CW_NCCL_INVALID_USAGE ||
	    call->result == CW_NCCL_UNHANDLED_CUDA_ERROR)
		return true;
	dead = first_death(s, &s->g.gates[gate]);
	if (dead == CW_SNAP_NONE || cw_snap_rank_shares_process(&ranks[dead], &ranks[rank]))
		return true;
	death = end_of_rank(&ranks[dead]);
	return call->ns && is_before(&failure, &death);
}

/*
 * Returns the end of the finding's rank. If the rank's call failed at a known time, the end is that
 * failure. Otherwise it is the end of the process.
 */
static struct end end_of(const struct engine_context *s, const struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[f->rank];

	return f->has_failed && f->failed_ns ? end_of_call(r, f->failed_ns) : end_of_rank(r);
}

/*
 * Returns the independent part of the job (independent_groups.h) that the finding's end belongs to.
 * CW_SNAP_NONE = the finding is no end, or its time is not known.
 */
static uint32_t part_of(const struct engine_context *s,
			const struct independent_groups *independent_groups,
			const struct finding *f)
{
	if ((f->verdict_class != CW_CLASS_PROCESS_DEAD && !f->has_failed) ||
	    f->rank == CW_SNAP_NONE || !end_of(s, f).ns)
		return CW_SNAP_NONE;
	return independent_groups_find(independent_groups, &s->g, f);
}

/* True if a signal from the process of rank `sender` ended rank r. */
static bool was_sent_by(const struct cw_snap_rank *r, const struct cw_snap_rank *sender)
{
	return r->end_by == CW_END_BY_PROCESS && r->end_sender && r->node == sender->node &&
	       r->end_sender == sender->pid;
}

/* True if the rank that sent the fatal signal has ended too, and did not end surely later. */
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

/* If one rank of a process knows that it lost a peer, marks all ranks of the process. */
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

/*
 * Notes the ranks to which NCCL reported a lost peer, on a communicator that they still had. Such a
 * rank may have ended because of this loss. A fault, or an end for lack of memory, does not follow
 * from a loss. A system error of a call is no sign of a loss either: the rank itself may lack
 * descriptors or shared memory.
 */
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
			const struct cw_snap_rank *r =
				member->rank == CW_SNAP_NONE ? NULL : &snap->ranks[member->rank];
			struct cw_ending end;
			bool is_own_fault;

			if (!r || member->state == CW_COMM_ABORTED ||
			    member->state == CW_COMM_DESTROYED ||
			    member->state == CW_COMM_REVOKED || member->state == CW_COMM_FAILED)
				continue;
			if (!cw_result_is_lost_peer(member->async_error) &&
			    member->last_result != CW_NCCL_REMOTE_ERROR)
				continue;
			end = (struct cw_ending){ .liveness = r->liveness,
						  .exit_code = r->exit_code,
						  .term_signal = r->term_signal };
			is_own_fault = (r->flags & CW_RANKF_OOM_KILLED) ||
				       (cw_ending_is_fault(&end) && r->term_signal != SIGABRT);
			if (!is_own_fault)
				s->has_lost_peer[member->rank] = true;
		}
	share_losses(snap, s->has_lost_peer);
	return 0;
}

/*
 * True if the end may follow from the loss of a peer. Either NCCL reported the loss, or the error
 * of the failed call suggests it.
 */
static bool may_follow(const struct engine_context *s, const struct finding *f)
{
	return s->has_lost_peer[f->rank] || (f->has_failed && f->is_late);
}

/*
 * Finds the first end of each part of the job; first[part] = NULL if there is none. If `earliest`
 * is not NULL, it has the earliest end of each part. Then we skip ends that came surely after that
 * end, and ends that may follow from a loss.
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

/*
 * Sets is_late for an end in each of these cases:
 *
 *  - It came surely after the first end of its part.
 *  - A signal from the first rank caused it.
 *  - It may follow from a loss, and another end of the part does not.
 *  - It is the first end, but the sender of its signal ended too.
 */
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
