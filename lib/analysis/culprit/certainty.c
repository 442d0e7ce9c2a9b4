/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of doubt allows at most a certain confidence, and the verdict gets the lowest of these.
 * Windows could raise it. We want windows of:
 *
 *  - the comms on the chain;
 *  - launches of which we know only a part;
 *  - comms with differing histories whose calls we do not have;
 *  - members that have gone on from the differing call.
 */
#include "analysis/culprit/certainty.h"

#include <errno.h>

#include "analysis/align/position.h"
#include "analysis/culprit/call_order.h"
#include "analysis/culprit/same_process.h"
#include "model/death.h"

/*
 * We ask for the windows of one communicator for this time, then for those of the next. stall.c
 * asks once in this time.
 */
#define MESSAGES_EVERY_NS (INT64_C(10) * 1000000000)
/*
 * A communicator with more members gets no windows for its messages: reading so many records costs
 * too much.
 */
#define MESSAGES_MAX_MEMBERS 64u

static enum cw_confidence lower(enum cw_confidence a, enum cw_confidence b)
{
	return a < b ? a : b;
}

/* False if the record lost ops, or if we never read the record. Then we may have missed events. */
static bool has_whole_record(const struct cw_snapshot *snap, uint32_t rank)
{
	return (snap->ranks[rank].flags & CW_RANKF_HAS_RECORD) && !snap->ranks[rank].dropped;
}

/* ---- blind spots ---- */

/*
 * True if the rank may wait outside of NCCL for another rank that itself waits in this hang.
 * Examples are a barrier of gloo or MPI, a key of a store, and a lock on a file. A rank that is
 * held, has ended or left the communicator waits for no other rank. A rank that waits for storage
 * or at a prompt does not either.
 */
static bool hides_its_wait(const struct cw_snap_rank *r, enum cw_detail detail)
{
	return !cw_liveness_is_dead(r->liveness) && !cw_rank_held_by(r) &&
	       detail != CW_DETAIL_ABORTED && detail != CW_DETAIL_DESTROYED &&
	       r->host_wait != CW_HOST_WAIT_TTY && r->host_wait != CW_HOST_WAIT_STORAGE;
}

/* Returns the blind spots in which the cause could be hidden, as bits of enum cw_blind_spot. */
static uint32_t find_blind_spots(const struct engine_context *s)
{
	const struct cw_snapshot *snap = s->snap;
	uint32_t spots = snap->n_ranks < snap->ranks_expected ? 1u << CW_BLIND_RANK : 0;

	for (uint32_t i = 0; i < snap->n_nodes; i++)
		if (snap->nodes[i].state != CW_NODE_REPORTING)
			spots |= 1u << CW_BLIND_RANK;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &snap->ranks[i];
		enum cw_detail detail = CW_DETAIL_NONE;

		if (!has_whole_record(snap, i))
			spots |= 1u << CW_BLIND_CALLS;
		if (s->g.unobserved[i] != CW_SNAP_NONE)
			spots |= 1u << CW_BLIND_PROGRESS;
		if (!waitgraph_is_missing(&s->g, i) || waitgraph_waits(&s->g, i))
			continue;
		for (uint32_t k = s->n_findings; k-- > 0;)
			if (s->findings[k].rank == i)
				detail = s->findings[k].detail;
		if (hides_its_wait(r, detail))
			spots |= 1u << CW_BLIND_WAIT;
	}
	for (uint32_t c = 0; c < s->snap->n_comms; c++)
		for (uint32_t m = 0; m < s->snap->comms[c].nranks; m++)
			if (s->snap->comms[c].members[m].rank == CW_SNAP_NONE)
				spots |= 1u << CW_BLIND_RANK;
	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];

		/*
		 * A send or receive may also wait for other ops of its group that the record lacks.
		 */
		if (gate->n_unseen)
			spots |= 1u << (gate->kind == GATE_P2P ? CW_BLIND_CALLS : CW_BLIND_RANK);
		if (gate->n_soft || gate->n_unobserved)
			spots |= 1u << CW_BLIND_PROGRESS;
	}
	return spots;
}

/* ---- the confidence that each doubt allows ---- */

/* Limits the confidence by our knowledge of the waits at the finding's gate. */
static enum cw_confidence gate_allows(const struct diagnosis *diag)
{
	const struct gate *gate;

	if (diag->main->gate == CW_SNAP_NONE || diag->main->verdict_class == CW_CLASS_MISMATCH)
		return CW_CONFIDENCE_CERTAIN;
	gate = &diag->s->g.gates[diag->main->gate];
	/* A failed call is visible without the progress of devices. */
	if (gate->n_soft == gate->n_waiters && !diag->main->has_failed)
		return CW_CONFIDENCE_POSSIBLE;
	/* Without since_ns we do not know whether any rank has waited for long. */
	if (!gate->since_ns && !diag->main->is_proof)
		return CW_CONFIDENCE_LIKELY;
	/* A half of a message that is not listed may have completed. */
	if (gate->n_unlisted)
		return CW_CONFIDENCE_POSSIBLE;
	return gate->n_unseen ? CW_CONFIDENCE_LIKELY : CW_CONFIDENCE_CERTAIN;
}

/*
 * Limits the confidence in a mismatch. Members whose calls are not known could change the majority.
 */
static enum cw_confidence mismatch_allows(const struct diagnosis *diag)
{
	const struct alignment *al = engine_context_sides(diag->s, diag->main);
	uint32_t nranks = diag->s->snap->comms[diag->main->comm].nranks;

	/*
	 * A difference in setup is only likely to be the cause. NCCL refuses some pairs of
	 * versions, and its variables choose the algorithm.
	 */
	if (diag->main->setup && !al->is_proof)
		return al->majority == ALIGN_NO_SIDE ? CW_CONFIDENCE_POSSIBLE
						     : CW_CONFIDENCE_LIKELY;
	if (!al->is_proof)
		return CW_CONFIDENCE_POSSIBLE;
	if (!al->knows_call)
		return CW_CONFIDENCE_LIKELY;
	/*
	 * The difference is proven. But of two equally large sides, we do not know which one is
	 * wrong.
	 */
	if (al->majority == ALIGN_NO_SIDE)
		return CW_CONFIDENCE_POSSIBLE;
	return al->sides[al->majority].n_ranks > nranks / 2 ? CW_CONFIDENCE_CERTAIN
							    : CW_CONFIDENCE_LIKELY;
}

/*
 * True if a culprit's device is stuck in old work. The culprit may be late because its device waits
 * for another rank.
 */
static bool is_held_by_device(const struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t i = 0; i < snap->comms[c].nranks; i++) {
			const struct cw_snap_member *m = &snap->comms[c].members[i];

			if (m->pending && m->rank < snap->n_ranks && diag->is_culprit[m->rank] &&
			    (position_of(snap, m).flags & POS_BEHIND) &&
			    snap->now_ns - m->pending->enter_ns >= snap->thresholds.stall_min_ns)
				return true;
		}
	return false;
}

/*
 * Limits the confidence in never_entered. If most members are missing, the few ranks inside may be
 * wrong.
 */
static enum cw_confidence majority_allows(const struct diagnosis *diag)
{
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];
	uint32_t nranks = diag->s->snap->comms[diag->main->comm].nranks;

	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (hides_its_wait(&diag->s->snap->ranks[diag->v->culprits[i].rank],
				   diag->main->detail))
			return CW_CONFIDENCE_LIKELY;
	if (diag->main->detail == CW_DETAIL_INSIDE_OTHER_CALL || is_held_by_device(diag) ||
	    same_process_may_be_others(diag->s, diag->main->rank, diag->is_culprit))
		return CW_CONFIDENCE_LIKELY;
	return gate->n_missing_all > nranks / 2 ? CW_CONFIDENCE_LIKELY : CW_CONFIDENCE_CERTAIN;
}

/*
 * Limits the confidence in a call that all members entered. A member may wait for another op of its
 * launch, or another kind of fault may hide in a blind spot.
 */
static enum cw_confidence full_call_allows(const struct diagnosis *diag)
{
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->main->comm];
	bool is_full = diag->s->g.gates[diag->main->gate].n_waiters == c->nranks;

	/* Without the member's window we know only one op of a grouped launch. */
	for (uint32_t m = 0; m < c->nranks && is_full; m++) {
		const struct cw_op *op = c->members[m].pending;

		is_full = !op || !(op->flags & CW_OPF_GROUPED) || c->members[m].window;
	}
	return is_full && !(diag->v->blind_spots & CW_BLIND_OF_CALL) ? CW_CONFIDENCE_CERTAIN
								     : CW_CONFIDENCE_LIKELY;
}

/*
 * True if all culprits are one process, so that none of them ended after another. False if there
 * are no culprits.
 */
static bool is_one_process(const struct diagnosis *diag)
{
	const struct cw_snap_rank *ranks = diag->s->snap->ranks;
	const struct cw_verdict *v = diag->v;

	for (uint32_t i = 1; i < v->n_culprits; i++)
		if (!cw_snap_rank_shares_process(&ranks[v->culprits[0].rank],
						 &ranks[v->culprits[i].rank]))
			return false;
	return v->n_culprits > 0;
}

/*
 * True if a rank that we do not see may have failed first, and a launcher then ended a culprit. The
 * signal to the culprit came from another process, or its sender is not known.
 */
static bool may_follow_unseen(const struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;

	if (snap->n_ranks >= snap->ranks_expected)
		return false;
	for (uint32_t i = 0; i < diag->v->n_culprits; i++) {
		const struct cw_snap_rank *r = &snap->ranks[diag->v->culprits[i].rank];
		const struct cw_ending end = { .liveness = r->liveness,
					       .term_signal = r->term_signal };

		if (r->liveness == CW_LIVE_KILLED && !cw_ending_is_fault(&end) &&
		    !(r->flags & CW_RANKF_OOM_KILLED) &&
		    (r->end_by == CW_END_BY_UNKNOWN || r->end_by == CW_END_BY_PROCESS ||
		     r->end_by == CW_END_BY_OUTSIDE))
			return true;
	}
	return false;
}

/* Limits the confidence by the doubts that belong to the verdict's class. */
static enum cw_confidence class_allows(const struct diagnosis *diag)
{
	const struct finding *f = diag->main;

	switch (f->verdict_class) {
	case CW_CLASS_DEADLOCK:
		/* A half of a message that is not listed may have completed. */
		for (uint32_t i = 0; i < diag->s->g.n_gates; i++)
			if (diag->s->g.gates[i].n_unlisted &&
			    diag->s->g.component[waitgraph_gate_node(&diag->s->g, i)] ==
				    diag->s->g.component[f->node])
				return CW_CONFIDENCE_POSSIBLE;
		return f->is_proof && call_order_is_posted(diag->s, diag->s->g.component[f->node])
			       ? diag->order_allows
			       : lower(diag->order_allows, CW_CONFIDENCE_LIKELY);
	case CW_CLASS_PROCESS_DEAD:
		/* If several ends have the same time, we do not know which end was first. */
		return f->is_proof && f->is_first && is_one_process(diag) &&
				       !may_follow_unseen(diag)
			       ? CW_CONFIDENCE_CERTAIN
			       : CW_CONFIDENCE_LIKELY;
	case CW_CLASS_MISMATCH:
		return mismatch_allows(diag);
	case CW_CLASS_NEVER_ENTERED:
		return majority_allows(diag);
	case CW_CLASS_IN_COLLECTIVE:
		if (f->connections)
			return lower(f->connections->allows, full_call_allows(diag));
		if (f->detail == CW_DETAIL_PAIR)
			return CW_CONFIDENCE_POSSIBLE;
		if (f->detail == CW_DETAIL_UNFINISHED)
			return diag->v->n_culprits > 1 ? CW_CONFIDENCE_POSSIBLE
						       : CW_CONFIDENCE_LIKELY;
		return full_call_allows(diag);
	case CW_CLASS_INIT_STUCK:
		if (f->has_failed)
			return f->is_proof && is_one_process(diag) ? CW_CONFIDENCE_CERTAIN
								   : CW_CONFIDENCE_LIKELY;
		return diag->v->n_culprits ? CW_CONFIDENCE_LIKELY : CW_CONFIDENCE_POSSIBLE;
	case CW_CLASS_UNKNOWN:
		return CW_CONFIDENCE_POSSIBLE;
	case CW_CLASS_P2P_UNMATCHED:
		return f->is_uneven && !diag->v->n_culprits ? CW_CONFIDENCE_POSSIBLE
							    : CW_CONFIDENCE_LIKELY;
	default:
		return CW_CONFIDENCE_LIKELY;
	}
}

/*
 * Lists the blind spots, and sets the confidence. Each doubt limits the confidence, and the lowest
 * limit counts. The doubts concern the class, the gate, other answers, unobserved calls of
 * culprits, and records with gaps.
 */
void certainty_judge(struct diagnosis *diag)
{
	const struct engine_context *s = diag->s;
	struct cw_verdict *v = diag->v;
	enum cw_confidence most;

	v->blind_spots = find_blind_spots(s);
	most = lower(class_allows(diag), gate_allows(diag));
	if (v->n_alternatives)
		most = lower(most, CW_CONFIDENCE_LIKELY);
	/* The ranks may also wait for another rank about which we know too little. */
	for (uint32_t i = 0; i < diag->n_related && !diag->main->is_proof; i++)
		if (diag->related[i]->verdict_class == CW_CLASS_UNKNOWN)
			most = lower(most, CW_CONFIDENCE_LIKELY);
	for (uint32_t i = 0; i < v->n_culprits; i++) {
		uint32_t rank = v->culprits[i].rank;

		/* The culprit's device may be stuck in a call whose progress we do not see. */
		if (!diag->main->is_proof && engine_context_unobserved(s, rank) != CW_SNAP_NONE)
			most = lower(most, CW_CONFIDENCE_POSSIBLE);
		if (!has_whole_record(s->snap, rank))
			most = lower(most, CW_CONFIDENCE_LIKELY);
	}
	for (uint32_t i = 0; i < v->n_chain; i++)
		if (!has_whole_record(s->snap, v->chain[i].rank))
			most = lower(most, CW_CONFIDENCE_LIKELY);
	v->confidence = most;
}

/* ---- windows ---- */

/* True if we have the member's window and the member has not moved since we read it. */
static bool has_window(const struct cw_snap_member *m)
{
	/* Windows of recordings carry no time, and there are no newer windows. */
	if (!m->window_ns)
		return m->window != NULL;
	return m->window_ns >= m->progress_ns;
}

/* True if we can fetch the member's window: it has a record, and its node reports. */
static bool can_be_fetched(const struct cw_snapshot *snap, const struct cw_snap_member *m)
{
	uint32_t node;

	if (m->rank >= snap->n_ranks || !(m->known & CW_KNOWN_ENTERED))
		return false;
	node = snap->ranks[m->rank].node;
	return node >= snap->n_nodes || snap->nodes[node].state == CW_NODE_REPORTING;
}

/* True if we could fetch the current window of some member and have not done so. */
static bool lacks_windows(const struct cw_snapshot *snap, uint32_t comm)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];

		if (can_be_fetched(snap, member) && !has_window(member))
			return true;
	}
	return false;
}

/*
 * A window that we read earlier may contain other calls. So we check that it contains the calls
 * between the two points.
 */
bool certainty_lacks_calls(const struct cw_snapshot *snap, uint32_t comm,
			   const struct call_hashes *h)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	for (uint32_t i = 0; i < c->nranks; i++) {
		const struct cw_snap_member *m = &c->members[i];
		bool has = m->window && !m->window_ns; /* a recording has no more calls */

		if (!can_be_fetched(snap, m))
			continue;
		for (uint32_t k = 0; k < m->n_window && !has; k++)
			has = m->window[k].coll_seq > h->agreed_seq &&
			      m->window[k].coll_seq <= h->differ_seq;
		if (!has)
			return true;
	}
	return false;
}

/*
 * True if some member has already left the differing call, so that only its window can show which
 * call it made. An example is a broadcast: the ranks before the differing rank in the ring complete
 * it, and they may be the majority.
 */
static bool lacks_a_side(const struct cw_snapshot *snap, uint32_t comm, const struct alignment *al)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	if (!al->seq || !al->knows_call)
		return false;
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];
		bool is_known = false;

		if (!can_be_fetched(snap, member) || member->coll_entered <= al->seq ||
		    has_window(member))
			continue;
		for (uint32_t s = 0; s < al->n_sides && !is_known; s++)
			for (uint32_t i = 0; al->sides[s].has_op && i < al->sides[s].n_ranks; i++)
				is_known = is_known || al->sides[s].ranks[i] == member->rank;
		if (!is_known)
			return true;
	}
	return false;
}

/*
 * True if windows may show why members of the comm have posted more sends than receives, or fewer.
 */
static bool has_uneven_messages(const struct cw_snapshot *snap, uint32_t comm)
{
	return snap->comms[comm].nranks <= MESSAGES_MAX_MEMBERS && messages_are_uneven(snap, comm);
}

/*
 * Returns the comm whose uneven numbers of sends and receives we examine now; CW_SNAP_NONE = none.
 * Such numbers are usual in a pipeline. So we examine one comm at a time, in turn. We skip comms
 * with many members, whose windows would cost too much.
 */
static uint32_t wanted_for_messages(const struct cw_snapshot *snap)
{
	uint32_t n = 0, nth;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		n += has_uneven_messages(snap, c);
	if (!n)
		return CW_SNAP_NONE;
	nth = (uint32_t)(snap->now_ns / MESSAGES_EVERY_NS % n);
	for (uint32_t c = 0;; c++)
		if (has_uneven_messages(snap, c) && !nth--)
			return c;
}

/*
 * Lists the comms whose windows could raise the confidence: comms with differing histories, comms
 * on the chain, comms with partly known launches, the verdict's own comm, and one comm with uneven
 * messages.
 */
int certainty_list_wanted(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t messages = wanted_for_messages(snap);
	bool *wanted = cw_arena_new_array(&diag->s->arena, bool, snap->n_comms);
	struct cw_verdict *v = diag->v;
	uint32_t n = 0;

	if (!wanted)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++) {
		const struct alignment *al = &diag->s->alignments[c];

		wanted[c] = al->hashes.differs && (!al->seq || !al->knows_call) &&
			    certainty_lacks_calls(snap, c, &al->hashes);
		v->histories_differ = v->histories_differ || wanted[c];
	}
	for (uint32_t i = 0; i < v->n_chain; i++)
		if (!wanted[v->chain[i].comm])
			wanted[v->chain[i].comm] = lacks_windows(snap, v->chain[i].comm);
	/* A rank in a launch may wait for any rank if we know only some ops of the launch. */
	for (uint32_t i = 0; i < diag->s->g.n_gates; i++) {
		const struct gate *gate = &diag->s->g.gates[i];
		bool is_old = gate->since_ns &&
			      snap->now_ns - gate->since_ns >= snap->thresholds.window_after_ns;

		if (gate->kind == GATE_P2P && gate->n_unseen && is_old && !wanted[gate->comm])
			wanted[gate->comm] = lacks_windows(snap, gate->comm);
	}
	/* If all members have completed the call, fresh windows only show which call each made. */
	if (v->comm != CW_SNAP_NONE && !wanted[v->comm])
		wanted[v->comm] = v->waiting_since_ns ? lacks_windows(snap, v->comm)
						      : lacks_a_side(snap, v->comm,
								     &diag->s->alignments[v->comm]);
	if (diag->main && diag->main->messages && diag->main->detail == CW_DETAIL_SIZE)
		wanted[v->comm] = lacks_windows(snap, v->comm);
	if (messages != CW_SNAP_NONE) {
		wanted[messages] = wanted[messages] || lacks_windows(snap, messages);
		v->messages_are_uneven = true;
	}
	for (uint32_t c = 0; c < snap->n_comms; c++)
		n += wanted[c];
	v->wanted = cw_arena_new_array(diag->arena, uint32_t, n);
	if (!v->wanted)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		if (wanted[c])
			v->wanted[v->n_wanted++] = c;
	v->wants_windows = n > 0;
	return 0;
}
