/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each sort of doubt names the most that it allows, and the least of these is the confidence. What
 * could make it surer are windows: of the comms on the chain, of launches known in part, of comms
 * whose histories differ while the calls themselves are not at hand, and of members that have gone
 * on from the call that differs.
 */
#include "analysis/culprit/certainty.h"

#include <errno.h>

#include "analysis/align/position.h"
#include "analysis/culprit/call_order.h"
#include "analysis/culprit/same_process.h"
#include "model/death.h"

/* One communicator is asked about for so long; stall.c asks once in it. */
#define MESSAGES_EVERY_NS (INT64_C(10) * 1000000000)
/* As many records are read for one. */
#define MESSAGES_MAX_MEMBERS 64u

static enum cw_confidence lower(enum cw_confidence a, enum cw_confidence b)
{
	return a < b ? a : b;
}

/* Records that lost ops or were never read may hide what happened. */
static bool has_whole_record(const struct cw_snapshot *snap, uint32_t rank)
{
	return (snap->ranks[rank].flags & CW_RANKF_HAS_RECORD) && !snap->ranks[rank].dropped;
}

/* ---- blind spots ---- */

/*
 * A rank that is held, ended or left the communicator waits for no other rank, and neither does one
 * in storage or at a prompt. Any other wait outside of NCCL may be for a rank that itself waits
 * here: in a barrier of gloo or MPI, for a key of a store, for a lock of a file.
 */
static bool hides_its_wait(const struct cw_snap_rank *r, enum cw_detail detail)
{
	return !cw_liveness_is_dead(r->liveness) && !cw_rank_held_by(r) &&
	       detail != CW_DETAIL_ABORTED && detail != CW_DETAIL_DESTROYED &&
	       r->host_wait != CW_HOST_WAIT_TTY && r->host_wait != CW_HOST_WAIT_STORAGE;
}

static bool is_missing_from_outside(const struct engine_context *s, uint32_t rank)
{
	return waitgraph_is_missing(&s->g, rank) && !waitgraph_waits(&s->g, rank);
}

static enum cw_detail detail_of(const struct engine_context *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->n_findings; i++)
		if (s->findings[i].rank == rank)
			return s->findings[i].detail;
	return CW_DETAIL_NONE;
}

static uint32_t blind_spots_of_ranks(const struct engine_context *s)
{
	const struct cw_snapshot *snap = s->snap;
	uint32_t spots = snap->n_ranks < snap->ranks_expected ? 1u << CW_BLIND_RANK : 0;

	for (uint32_t i = 0; i < snap->n_nodes; i++)
		if (snap->nodes[i].state != CW_NODE_REPORTING)
			spots |= 1u << CW_BLIND_RANK;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &snap->ranks[i];

		if (!has_whole_record(snap, i))
			spots |= 1u << CW_BLIND_CALLS;
		if (s->g.unobserved[i] != CW_SNAP_NONE)
			spots |= 1u << CW_BLIND_PROGRESS;
		if (is_missing_from_outside(s, i) && hides_its_wait(r, detail_of(s, i)))
			spots |= 1u << CW_BLIND_WAIT;
	}
	return spots;
}

static bool has_unseen_member(const struct cw_snap_comm *c)
{
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank == CW_SNAP_NONE)
			return true;
	return false;
}

static uint32_t find_blind_spots(const struct engine_context *s)
{
	uint32_t spots = blind_spots_of_ranks(s);

	for (uint32_t c = 0; c < s->snap->n_comms; c++)
		if (has_unseen_member(&s->snap->comms[c]))
			spots |= 1u << CW_BLIND_RANK;
	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];

		/* Of a send or receive: others of its group, which are not at hand. */
		if (gate->n_unseen)
			spots |= 1u << (gate->kind == GATE_P2P ? CW_BLIND_CALLS : CW_BLIND_RANK);
		if (gate->n_soft || gate->n_unobserved)
			spots |= 1u << CW_BLIND_PROGRESS;
	}
	return spots;
}

/* ---- the confidence that each doubt allows ---- */

static enum cw_confidence records_allow(const struct diagnosis *diag)
{
	const struct cw_verdict *v = diag->v;

	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (!has_whole_record(diag->s->snap, v->culprits[i].rank))
			return CW_CONFIDENCE_LIKELY;
	for (uint32_t i = 0; i < v->n_chain; i++)
		if (!has_whole_record(diag->s->snap, v->chain[i].rank))
			return CW_CONFIDENCE_LIKELY;
	return CW_CONFIDENCE_CERTAIN;
}

static enum cw_confidence gate_allows(const struct diagnosis *diag)
{
	const struct gate *gate;

	if (diag->main->gate == CW_SNAP_NONE || diag->main->verdict_class == CW_CLASS_MISMATCH)
		return CW_CONFIDENCE_CERTAIN;
	gate = &diag->s->g.gates[diag->main->gate];
	/* A call that failed is seen without any progress of devices. */
	if (gate->n_soft == gate->n_waiters && !diag->main->has_failed)
		return CW_CONFIDENCE_POSSIBLE;
	/* Nobody says that anybody has waited for long. */
	if (!gate->since_ns && !diag->main->is_proof)
		return CW_CONFIDENCE_LIKELY;
	return gate->n_unseen ? CW_CONFIDENCE_LIKELY : CW_CONFIDENCE_CERTAIN;
}

/* Members whose calls nobody has seen could turn a majority round. */
static enum cw_confidence mismatch_allows(const struct diagnosis *diag)
{
	const struct alignment *al = engine_context_sides(diag->s, diag->main);
	uint32_t nranks = diag->s->snap->comms[diag->main->comm].nranks;

	/* NCCL refuses some versions side by side, and chooses algorithms by its variables. */
	if (diag->main->setup && !al->is_proof)
		return al->majority == ALIGN_NO_SIDE ? CW_CONFIDENCE_POSSIBLE
						     : CW_CONFIDENCE_LIKELY;
	if (!al->is_proof)
		return CW_CONFIDENCE_POSSIBLE;
	if (!al->knows_call)
		return CW_CONFIDENCE_LIKELY;
	/* That they differ is proven; which of two sides of one size is wrong, nothing says. */
	if (al->majority == ALIGN_NO_SIDE)
		return CW_CONFIDENCE_POSSIBLE;
	return al->sides[al->majority].n_ranks > nranks / 2 ? CW_CONFIDENCE_CERTAIN
							    : CW_CONFIDENCE_LIKELY;
}

/*
 * A culprit has work on its device that does not get on: why it has not come may lie there, with
 * somebody its device waits for.
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

/* When most members are missing, the few inside may be the ones in the wrong place. */
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

/* Of what somebody launched together with the call, a part has not been seen. */
static bool hides_a_launch(const struct cw_snap_comm *c)
{
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_op *op = c->members[m].pending;

		if (op && (op->flags & CW_OPF_GROUPED) && !c->members[m].window)
			return true;
	}
	return false;
}

/* Everybody is there, and nobody brought anything but the others did. */
static enum cw_confidence full_call_allows(const struct diagnosis *diag)
{
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->main->comm];

	return diag->s->g.gates[diag->main->gate].n_waiters == c->nranks && !hides_a_launch(c) &&
			       !(diag->v->blind_spots & CW_BLIND_OF_CALL)
		       ? CW_CONFIDENCE_CERTAIN
		       : CW_CONFIDENCE_LIKELY;
}

/* There is somebody to blame, and no two of them can have come one after the other. */
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

/* Somebody's doing, or it may be: nobody saw who sent it. */
static bool may_have_been_ended(const struct cw_snap_rank *r)
{
	const struct cw_ending end = { .liveness = r->liveness, .term_signal = r->term_signal };

	if (r->liveness != CW_LIVE_KILLED || cw_ending_is_fault(&end) ||
	    (r->flags & CW_RANKF_OOM_KILLED))
		return false;
	return r->end_by == CW_END_BY_UNKNOWN || r->end_by == CW_END_BY_PROCESS ||
	       r->end_by == CW_END_BY_OUTSIDE;
}

/* A rank that nobody sees may have failed before, and a launcher have ended those that are named.
 */
static bool may_follow_unseen(const struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;

	if (snap->n_ranks >= snap->ranks_expected)
		return false;
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (may_have_been_ended(&snap->ranks[diag->v->culprits[i].rank]))
			return true;
	return false;
}

static enum cw_confidence class_allows(const struct diagnosis *diag)
{
	const struct finding *f = diag->main;

	switch (f->verdict_class) {
	case CW_CLASS_DEADLOCK:
		return f->is_proof && call_order_is_posted(diag->s, diag->s->g.component[f->node])
			       ? diag->order_allows
			       : lower(diag->order_allows, CW_CONFIDENCE_LIKELY);
	case CW_CLASS_PROCESS_DEAD:
		/* Of several that time does not tell apart, nobody knows who was first. */
		return f->is_proof && f->is_first && is_one_process(diag) &&
				       !may_follow_unseen(diag)
			       ? CW_CONFIDENCE_CERTAIN
			       : CW_CONFIDENCE_LIKELY;
	case CW_CLASS_MISMATCH:
		return mismatch_allows(diag);
	case CW_CLASS_NEVER_ENTERED:
		return majority_allows(diag);
	case CW_CLASS_IN_COLLECTIVE:
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

/* Other possible answers, or somebody else they wait for of whom too little is known. */
static enum cw_confidence company_allows(const struct diagnosis *diag)
{
	if (diag->v->n_alternatives)
		return CW_CONFIDENCE_LIKELY;
	for (uint32_t i = 0; i < diag->n_related; i++)
		if (diag->related[i]->verdict_class == CW_CLASS_UNKNOWN && !diag->main->is_proof)
			return CW_CONFIDENCE_LIKELY;
	return CW_CONFIDENCE_CERTAIN;
}

/* A culprit may be held up on its device, in a call of which nobody sees how far it is. */
static enum cw_confidence unobserved_allows(const struct diagnosis *diag)
{
	if (diag->main->is_proof)
		return CW_CONFIDENCE_CERTAIN;
	for (uint32_t i = 0; i < diag->v->n_culprits; i++)
		if (engine_context_unobserved(diag->s, diag->v->culprits[i].rank) != CW_SNAP_NONE)
			return CW_CONFIDENCE_POSSIBLE;
	return CW_CONFIDENCE_CERTAIN;
}

void certainty_judge(struct diagnosis *diag)
{
	enum cw_confidence most = company_allows(diag);

	diag->v->blind_spots = find_blind_spots(diag->s);
	most = lower(most, class_allows(diag));
	most = lower(most, gate_allows(diag));
	most = lower(most, unobserved_allows(diag));
	diag->v->confidence = lower(most, records_allow(diag));
}

/* ---- windows ---- */

/* It has not moved since its window was read. */
static bool has_window(const struct cw_snap_member *m)
{
	/* Windows of recordings carry no time: they are all there will be. */
	if (!m->window_ns)
		return m->window != NULL;
	return m->window_ns >= m->progress_ns;
}

static bool can_be_fetched(const struct cw_snapshot *snap, const struct cw_snap_member *m)
{
	uint32_t node;

	if (m->rank >= snap->n_ranks || !(m->known & CW_KNOWN_ENTERED))
		return false;
	node = snap->ranks[m->rank].node;
	return node >= snap->n_nodes || snap->nodes[node].state == CW_NODE_REPORTING;
}

/* Some member's window could be fetched and has not been. */
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

/* An earlier window may hold others. */
bool certainty_lacks_calls(const struct cw_snapshot *snap, uint32_t comm,
			   const struct call_hashes *h)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	for (uint32_t i = 0; i < c->nranks; i++) {
		const struct cw_snap_member *m = &c->members[i];
		bool has = m->window && !m->window_ns; /* of a recording: there is no more */

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

static bool is_on_a_side(const struct alignment *al, uint32_t rank)
{
	for (uint32_t s = 0; s < al->n_sides; s++)
		for (uint32_t i = 0; al->sides[s].has_op && i < al->sides[s].n_ranks; i++)
			if (al->sides[s].ranks[i] == rank)
				return true;
	return false;
}

/*
 * Somebody has gone on from the call that differs: what it called there, only its window tells. In
 * a broadcast the ranks before the odd one in the ring are done, and it may be they who are many.
 */
static bool lacks_a_side(const struct cw_snapshot *snap, uint32_t comm, const struct alignment *al)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	if (!al->seq || !al->knows_call)
		return false;
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];

		if (can_be_fetched(snap, member) && member->coll_entered > al->seq &&
		    !has_window(member) && !is_on_a_side(al, member->rank))
			return true;
	}
	return false;
}

static bool has_uneven_messages(const struct cw_snapshot *snap, uint32_t comm)
{
	return snap->comms[comm].nranks <= MESSAGES_MAX_MEMBERS && messages_are_uneven(snap, comm);
}

/* Whoever waits in a launch of which only some ops are known may wait for anybody. */
static void want_whole_launches(const struct engine_context *s, bool *wanted)
{
	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];
		bool is_old = gate->since_ns && s->snap->now_ns - gate->since_ns >=
							s->snap->thresholds.window_after_ns;

		if (gate->kind == GATE_P2P && gate->n_unseen && is_old && !wanted[gate->comm])
			wanted[gate->comm] = lacks_windows(s->snap, gate->comm);
	}
}

/*
 * While nothing worse is known: what lies behind an uneven number of sends and receives. It is the
 * usual state of a pipeline, so one communicator is asked about at a time, in turn; and of one with
 * many members windows would cost too much.
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
	want_whole_launches(diag->s, wanted);
	/* Of a call that is over for everybody, fresh windows tell only who called what. */
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
