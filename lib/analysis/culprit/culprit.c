/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of the waiting, and what is the matter at each.
 *
 * Following who waits for whom ends in one of four ways: at a rank that is missing somewhere and
 * waits nowhere itself; at a gate at which everybody has come and which does not open; at a gate
 * where the missing members are not visible; or nowhere, because the path is a cycle. To these come
 * the comms whose members made different calls, or whose messages do not fit, whether or not
 * anybody waits because of it.
 */
#include "analysis/culprit/culprit.h"

#include <errno.h>
#include <signal.h>

#include "analysis/align/position.h"
#include "analysis/culprit/blocked_collective.h"
#include "analysis/culprit/consequence.h"
#include "analysis/culprit/death_order.h"
#include "analysis/culprit/wait_cycle.h"
#include "model/death.h"
#include "record/record_layout.h"

/* Within this time several deaths are one event; a second one later does not explain the first. */
#define ENDING_TOGETHER_NS (INT64_C(30) * 1000000000)
/* What differed so long ago and held up nobody since is not why a call does not open now. */
#define DISPLACES_FOR_NS (INT64_C(60) * 1000000000)
/* A call that does not open shows that after so long at the earliest: of shorter ones two
 * evaluations may see the same. */
#define DISPLACED_SEEN_NS (INT64_C(2) * 1000000000)
/* After this time every record of a dead rank has been read once more. */
#define RECORD_SETTLED_NS (INT64_C(2) * 1000000000)

/* No launcher grants more to those whom it asked to end. */
#define GRACE_NS (INT64_C(60) * 1000000000)

/* Nobody who ends a job makes its ranks end like that: it is the kernel's word. */
static bool has_failed(const struct cw_snap_rank *r)
{
	if (r->flags & CW_RANKF_OOM_KILLED)
		return true;
	if (r->liveness == CW_LIVE_EXITED)
		return r->exit_code > 0 && r->exit_code <= 128 && r->end_by == CW_END_BY_NOBODY;
	if (r->liveness != CW_LIVE_KILLED || r->end_by == CW_END_BY_PROCESS ||
	    r->end_by == CW_END_BY_OUTSIDE)
		return false;
	return r->term_signal == SIGSEGV || r->term_signal == SIGBUS || r->term_signal == SIGFPE ||
	       r->term_signal == SIGILL || r->term_signal == SIGSYS;
}

static void count_ended(struct engine_context *s)
{
	const struct cw_snap_rank *one = NULL;

	s->has_one_ended = true;
	for (uint32_t i = 0; i < s->snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &s->snap->ranks[i];

		if (!cw_liveness_is_dead(r->liveness))
			continue;
		s->n_ended++;
		if (!one)
			one = r;
		s->has_one_ended = s->has_one_ended && cw_snap_rank_shares_process(one, r);
		if (!s->first_end_ns || r->ended_ns < s->first_end_ns)
			s->first_end_ns = r->ended_ns;
		if (r->ended_ns > s->last_end_ns)
			s->last_end_ns = r->ended_ns;
	}
}

static bool has_aborted(const struct cw_snap_rank *r)
{
	return r->liveness == CW_LIVE_KILLED && r->term_signal == SIGABRT &&
	       (r->end_by == CW_END_BY_UNKNOWN || r->end_by == CW_END_BY_ITSELF);
}

/*
 * Those that aborted in a call that they had long waited in. That is what a job's own watchdog does
 * to whoever waits, never to whom it waits for: others that miss them wait for the same.
 */
static int find_who_gave_up(struct engine_context *s)
{
	const struct cw_snapshot *snap = s->snap;
	bool has_some = false;

	for (uint32_t i = 0; i < snap->n_ranks && !has_some; i++)
		has_some = has_aborted(&snap->ranks[i]);
	if (!has_some)
		return 0;
	s->has_given_up = cw_arena_new_array(&s->arena, bool, snap->n_ranks);
	if (!s->has_given_up)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];
			const struct cw_snap_rank *r =
				member->rank == CW_SNAP_NONE ? NULL : &snap->ranks[member->rank];

			if (r && member->pending && member->pending->enter_ns && has_aborted(r) &&
			    r->ended_ns - member->pending->enter_ns >= CW_GIVES_UP_AFTER_NS)
				s->has_given_up[member->rank] = true;
		}
	return 0;
}

/* Of several failures at once any may be the first. */
static bool failed_with_first(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];

	if (rank == s->failed_first || s->failed_first == CW_SNAP_NONE)
		return s->failed_first != CW_SNAP_NONE;
	return cw_liveness_is_dead(r->liveness) && r->ended_ns && has_failed(r) &&
	       !death_order_is_before(&s->snap->ranks[s->failed_first], r);
}

/*
 * It seems to have failed by itself, and nobody has seen that nothing asked it to: an exit with an
 * error without the kernel's word, or an abort, which a job that is cancelled may end with as well.
 */
static bool seems_failed(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	const struct cw_ending end = { .liveness = r->liveness,
				       .exit_code = r->exit_code,
				       .term_signal = r->term_signal };

	if (has_aborted(r))
		return !s->has_given_up[rank];
	return r->liveness == CW_LIVE_EXITED && r->exit_code > 0 && r->exit_code != 128 + SIGKILL &&
	       r->end_by == CW_END_BY_UNKNOWN && !cw_ending_is_asked(&end);
}

static uint32_t find_earliest(const struct engine_context *s, bool is_known)
{
	const struct cw_snapshot *snap = s->snap;
	uint32_t first = CW_SNAP_NONE;

	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &snap->ranks[i];

		if (cw_liveness_is_dead(r->liveness) && r->ended_ns &&
		    (has_failed(r) || (!is_known && seems_failed(s, i))) &&
		    (first == CW_SNAP_NONE || r->ended_ns < snap->ranks[first].ended_ns))
			first = i;
	}
	return first;
}

/* Nobody ended surely before it; of those that failed with it, it need not be the first. */
static bool is_failure_first(const struct engine_context *s, uint32_t first)
{
	const struct cw_snapshot *snap = s->snap;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (cw_liveness_is_dead(snap->ranks[i].liveness) &&
		    death_order_is_before(&snap->ranks[i], &snap->ranks[first]))
			return false;
	return true;
}

/* It ended alone before all others, and no launcher is gone: nobody was asking for an end. */
static bool is_surely_first(const struct engine_context *s, uint32_t first)
{
	const struct cw_snapshot *snap = s->snap;

	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		const struct cw_snap_rank *r = &snap->ranks[i];

		if (cw_snap_rank_shares_process(&snap->ranks[first], r))
			continue;
		if (cw_liveness_is_dead(r->liveness)
			    ? !death_order_is_before(&snap->ranks[first], r)
			    : r->flags & CW_RANKF_SHUTDOWN)
			return false;
	}
	return true;
}

/*
 * One rank fails, and its launcher ends the others of its node: that is no shutdown, for those on
 * other nodes hear of it late, or never.
 */
static void find_failed_first(struct engine_context *s)
{
	uint32_t known = find_earliest(s, true), seeming = find_earliest(s, false);

	s->failed_first = CW_SNAP_NONE;
	if (known != CW_SNAP_NONE && is_failure_first(s, known))
		s->failed_first = known;
	else if (seeming != CW_SNAP_NONE && is_surely_first(s, seeming))
		s->failed_first = seeming;
	for (uint32_t i = 0; s->failed_first != CW_SNAP_NONE && i < s->snap->n_ranks; i++)
		s->n_failed_first += i == s->failed_first ||
				     (failed_with_first(s, i) &&
				      !cw_snap_rank_shares_process(&s->snap->ranks[s->failed_first],
								   &s->snap->ranks[i]));
}

/* ---- a rank that is missing and waits nowhere ---- */

static enum cw_detail how_it_ended(const struct cw_snap_rank *r)
{
	if (r->flags & CW_RANKF_OOM_KILLED)
		return CW_DETAIL_OOM_KILLED;
	switch (r->liveness) {
	case CW_LIVE_EXITED:
		return CW_DETAIL_EXITED;
	case CW_LIVE_KILLED:
		return CW_DETAIL_KILLED;
	default:
		return CW_DETAIL_GONE;
	}
}

/* A second death within half a minute may be a shutdown: then time must tell. */
static bool died_alone(const struct engine_context *s)
{
	return s->has_one_ended || s->last_end_ns - s->first_end_ns > ENDING_TOGETHER_NS;
}

/* Its record was read after its death, so nothing can have been added to it. */
static bool record_is_final(const struct engine_context *s, const struct cw_snap_rank *r)
{
	return r->sampled_ns >= r->ended_ns || s->snap->now_ns - r->ended_ns > RECORD_SETTLED_NS;
}

/* It certainly had not completed what the gate waits for. */
static bool had_not_completed(const struct engine_context *s, uint32_t rank,
			      const struct gate *gate)
{
	uint32_t m = engine_context_comm_rank(s, gate->comm, rank);
	const struct cw_snap_member *member;

	if (m == CW_SNAP_NONE)
		return false;
	member = &s->snap->comms[gate->comm].members[m];
	if (gate->kind != GATE_COLLECTIVE && gate->kind != GATE_ROOT)
		return member->known & CW_KNOWN_ENTERED;
	if (member->known & CW_KNOWN_COMPLETED)
		return member->coll_completed < gate->seq;
	return (member->known & CW_KNOWN_ENTERED) && member->coll_entered < gate->seq;
}

/* However many ended with it: nobody who takes a job down makes its ranks end like that. */
static bool ended_by_itself(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];

	return has_failed(r) || (has_aborted(r) && !s->has_given_up[rank]);
}

/*
 * Another of its node had given up before: its launcher asks the others to end, and kills who has
 * not within a time that it grants them, to save what they have.
 */
static bool ended_after_who_gave_up(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];

	if (!s->has_given_up || r->liveness != CW_LIVE_KILLED || r->term_signal != SIGKILL ||
	    r->flags & CW_RANKF_OOM_KILLED || r->end_by == CW_END_BY_ITSELF ||
	    r->end_by == CW_END_BY_KERNEL)
		return false;
	for (uint32_t i = 0; i < s->snap->n_ranks; i++) {
		const struct cw_snap_rank *o = &s->snap->ranks[i];

		if (s->has_given_up[i] && o->node == r->node && o->ended_ns <= r->ended_ns &&
		    r->ended_ns - o->ended_ns <= GRACE_NS)
			return true;
	}
	return false;
}

/*
 * The others wait in a call of which the rank got an error. The error is why the rank does not
 * come, and no later act of the rank changes that. An error that may follow from a peer's loss
 * proves nothing: is_late.
 */
static void note_failed(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	uint32_t at = s->failed_at[rank];
	struct failed_call call;
	const struct gate *gate;

	if (at == CW_SNAP_NONE || !engine_context_failed_call(s, at, rank, &call))
		return;
	gate = &s->g.gates[at];
	f->gate = at;
	f->comm = gate->comm;
	f->seq = gate->kind == GATE_COLLECTIVE || gate->kind == GATE_ROOT ? gate->seq : 0;
	f->since_ns = gate->since_ns;
	f->has_failed = true;
	f->failed_ns = call.ns;
	f->is_late = !death_order_is_own_failure(s, at, rank, &call);
}

static bool classify_dead(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	bool has_own_failure = f->has_failed && !f->is_late;
	bool is_first = failed_with_first(s, rank) || has_own_failure;
	bool was_asked = r->flags & CW_RANKF_SHUTDOWN ||
			 (s->has_given_up && s->has_given_up[rank]) ||
			 ended_after_who_gave_up(s, rank);

	if (!is_first && ((was_asked && engine_context_may_be_ending(s)) ||
			  (!ended_by_itself(s, rank) && engine_context_is_ending(s))))
		return false;
	f->verdict_class = CW_CLASS_PROCESS_DEAD;
	f->detail = how_it_ended(r);
	f->is_first = has_own_failure || (is_first && s->n_failed_first == 1) ||
		      (!was_asked && died_alone(s));
	/* That several failed is no less a failure: only who was first is not known. */
	f->is_proof = ((is_first && has_failed(r)) ||
		       (!was_asked && (f->is_first || ended_by_itself(s, rank)))) &&
		      record_is_final(s, r) && had_not_completed(s, rank, &s->g.gates[f->gate]);
	f->is_proof = f->is_proof || has_own_failure;
	return true;
}

static bool left_comm(const struct engine_context *s, uint32_t rank, const struct gate *gate,
		      enum cw_detail *ret_how)
{
	uint32_t m = engine_context_comm_rank(s, gate->comm, rank);
	uint32_t state =
		m == CW_SNAP_NONE ? CW_COMM_READY : s->snap->comms[gate->comm].members[m].state;

	*ret_how = state == CW_COMM_DESTROYED ? CW_DETAIL_DESTROYED : CW_DETAIL_ABORTED;
	return state == CW_COMM_DESTROYED || state == CW_COMM_ABORTED || state == CW_COMM_REVOKED;
}

static bool is_behind(const struct engine_context *s, uint32_t rank, const struct gate *gate)
{
	uint32_t m = engine_context_comm_rank(s, gate->comm, rank);
	struct position p;

	if (m == CW_SNAP_NONE)
		return false;
	p = position_of(s->snap, &s->snap->comms[gate->comm].members[m]);
	/* An op before it holds it up as well, which others may have completed without this rank.
	 */
	return (p.flags & POS_BEHIND) &&
	       (gate->kind == GATE_P2P || (p.op->coll_seq && p.op->coll_seq <= gate->seq));
}

/*
 * Somebody waits for an op of the rank that its device does not come to, on whatever comm: the host
 * may be outside all the others because it waits for that device.
 */
static bool find_behind(const struct engine_context *s, uint32_t rank, uint32_t *ret_gate)
{
	for (uint32_t i = s->g.miss_start[rank]; i < s->g.miss_start[rank + 1]; i++)
		if (is_behind(s, rank, &s->g.gates[s->g.misses[i]])) {
			*ret_gate = s->g.misses[i];
			return true;
		}
	return false;
}

/*
 * Its device has long not come to some op of the rank, in whatever comm: others may have completed
 * that one without it (the root of a broadcast does), and wait for it behind.
 */
static bool is_held_by_device(const struct engine_context *s, uint32_t rank)
{
	const struct cw_op *op = s->g.behind[rank];

	return op && op->enter_ns &&
	       s->snap->now_ns - op->enter_ns >= s->snap->thresholds.stall_min_ns;
}

static void note_held(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	const struct gate *gate = &s->g.gates[f->gate];
	uint32_t comm = s->g.behind_comm[rank];

	if (!s->g.behind[rank] ||
	    (comm == gate->comm && gate->op && s->g.behind[rank]->coll_seq == gate->seq))
		return;
	f->held = s->g.behind[rank];
	f->held_comm = comm;
}

static void classify_alive(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	const struct gate *gate = &s->g.gates[f->gate];

	if (f->has_failed) {
		f->verdict_class = CW_CLASS_INIT_STUCK;
		f->detail = CW_DETAIL_FAILED;
		f->is_proof = !f->is_late;
		return;
	}
	f->verdict_class = CW_CLASS_NEVER_ENTERED;
	if (gate->kind == GATE_P2P)
		f->verdict_class = CW_CLASS_P2P_UNMATCHED;
	else if (gate->kind == GATE_HOST || gate->kind == GATE_INIT)
		f->verdict_class = CW_CLASS_INIT_STUCK;
	if (cw_rank_held_by(r)) {
		f->detail = cw_rank_held_by(r);
	} else if (left_comm(s, rank, gate, &f->detail)) {
		;
	} else if (f->verdict_class == CW_CLASS_INIT_STUCK) {
		f->detail = blocked_collective_host_detail(gate->op_kind);
	} else if (is_behind(s, rank, gate) || find_behind(s, rank, &f->gate) ||
		   is_held_by_device(s, rank)) {
		gate = &s->g.gates[f->gate];
		note_held(s, rank, f);
		f->verdict_class = CW_CLASS_DEVICE_STALLED;
		f->detail = CW_DETAIL_NONE;
		f->comm = gate->comm;
		f->seq = gate->kind == GATE_P2P ? 0 : gate->seq;
		f->since_ns = gate->since_ns;
	} else if (r->host_call.kind != CW_OP_NONE) {
		f->detail = CW_DETAIL_INSIDE_OTHER_CALL;
	} else {
		f->detail = CW_DETAIL_OUTSIDE_NCCL;
	}
}

/* That would be why the host has not come, or the stream not got there. */
static bool may_be_held_unseen(const struct engine_context *s, const struct finding *f)
{
	uint32_t unobserved = engine_context_unobserved(s, f->rank);

	return unobserved != CW_SNAP_NONE && !f->has_failed &&
	       (f->verdict_class == CW_CLASS_DEVICE_STALLED || unobserved != f->comm);
}

/*
 * Others of the comm have completed calls that the rank entered after its node was last heard, and
 * long after: it is the node's daemon that cannot be reached, its ranks worked on.
 */
static bool has_outlived_its_daemon(const struct engine_context *s, const struct finding *f)
{
	const struct cw_snapshot *snap = s->snap;
	int64_t last_seen_ns = snap->nodes[snap->ranks[f->rank].node].last_digest_ns;
	uint32_t place = f->comm < snap->n_comms ? engine_context_comm_rank(s, f->comm, f->rank)
						 : CW_SNAP_NONE;
	const struct cw_snap_comm *c;
	const struct cw_snap_member *own;

	if (place == CW_SNAP_NONE || !last_seen_ns)
		return false;
	c = &snap->comms[f->comm];
	own = &c->members[place];
	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *other = &c->members[m];

		if (other->rank != CW_SNAP_NONE && own->known & CW_KNOWN_ENTERED &&
		    other->known & CW_KNOWN_COMPLETED &&
		    other->coll_completed > own->coll_entered &&
		    other->progress_ns - last_seen_ns > snap->thresholds.node_silent_ns)
			return true;
	}
	return false;
}

/* False: it is no culprit after all. */
static bool classify_rank(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	uint32_t node_state =
		r->node < s->snap->n_nodes ? s->snap->nodes[r->node].state : CW_NODE_REPORTING;
	const struct gate *gate;

	f->gate = engine_context_gate_of(s, rank);
	gate = &s->g.gates[f->gate];
	*f = (struct finding){ .node = rank,
			       .rank = rank,
			       .partner = CW_SNAP_NONE,
			       .gate = f->gate,
			       .comm = gate->comm,
			       .seq = gate->kind == GATE_COLLECTIVE || gate->kind == GATE_ROOT
					      ? gate->seq
					      : 0,
			       .since_ns = gate->since_ns };
	note_failed(s, rank, f);
	if (cw_liveness_is_dead(r->liveness))
		return classify_dead(s, rank, f);
	if (r->flags & CW_RANKF_SHUTDOWN)
		return false;
	switch (node_state) {
	case CW_NODE_UNREACHABLE:
		f->verdict_class = CW_CLASS_NODE_UNREACHABLE;
		if (!has_outlived_its_daemon(s, f))
			return true;
		f->verdict_class = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_NODE_SILENT;
		return true;
	case CW_NODE_SILENT:
		f->verdict_class = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_NODE_SILENT;
		return true;
	case CW_NODE_SAID_GOODBYE:
		f->verdict_class = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_DAEMON_RESTARTING;
		return true;
	default:
		classify_alive(s, rank, f);
		if (may_be_held_unseen(s, f)) {
			f->verdict_class = CW_CLASS_UNKNOWN;
			f->detail = CW_DETAIL_PROGRESS_UNTRACKED;
		}
		return true;
	}
}

/* ---- comms whose members made different calls ---- */

/* All members are known to be beyond the call: whatever they wait for now, it is not that. */
static bool all_completed(const struct engine_context *s, uint32_t comm, uint64_t seq)
{
	const struct cw_snap_comm *c = &s->snap->comms[comm];

	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank == CW_SNAP_NONE ||
		    !(c->members[m].known & CW_KNOWN_COMPLETED) ||
		    c->members[m].coll_completed < seq)
			return false;
	return true;
}

/*
 * Seen from the host only, a rank stands in its newest call whenever one looks: it waits there only
 * if that lasts.
 */
static bool is_waited_at(const struct engine_context *s, const struct gate *gate)
{
	return gate->n_soft < gate->n_waiters ||
	       (gate->since_ns &&
		s->snap->now_ns - gate->since_ns >= s->snap->thresholds.stall_min_ns);
}

/* Its call of this number, alone; NULL = it is not at hand, or was made in a group. */
static const struct cw_op *lone_call(const struct cw_snap_member *m, uint64_t seq)
{
	const struct cw_op *ops[] = { m->pending, m->last };

	for (unsigned i = 0; i < 2 && m->rank != CW_SNAP_NONE; i++)
		if (ops[i] && position_is_step(ops[i]) && ops[i]->coll_seq == seq &&
		    !(ops[i]->flags & CW_OPF_GROUPED))
			return ops[i];
	return NULL;
}

/*
 * Those who have come there made calls of different kinds. After a call that one of them left out,
 * the next few may still go through, each taking the data of another.
 */
static bool differs_there(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	const struct cw_op *first = NULL;

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_op *op = lone_call(&c->members[m], gate->seq);

		if (op && first && (op->kind != first->kind || op->root != first->root))
			return true;
		first = op ? op : first;
	}
	return false;
}

/* What moved the same bytes the same way leaves nothing behind: a type of that size, an operator.
 */
static bool moves_alike(const struct cw_op *a, const struct cw_op *b)
{
	return a->kind == b->kind && a->root == b->root && a->bytes == b->bytes;
}

/* The oldest wait at or after the differing call; CW_SNAP_NONE = nobody waits because of it. */
static uint32_t *oldest_gates(struct engine_context *s)
{
	uint32_t *oldest = cw_arena_new_array(&s->arena, uint32_t, s->snap->n_comms);

	if (!oldest)
		return NULL;
	for (uint32_t c = 0; c < s->snap->n_comms; c++)
		oldest[c] = CW_SNAP_NONE;
	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];
		uint32_t *o = &oldest[gate->comm];

		if (gate->kind != GATE_COLLECTIVE && gate->kind != GATE_ROOT)
			continue;
		if (gate->seq < s->alignments[gate->comm].from_seq || !is_waited_at(s, gate))
			continue;
		if (*o == CW_SNAP_NONE || gate->since_ns < s->g.gates[*o].since_ns)
			*o = i;
	}
	return oldest;
}

/*
 * Where all are through the call that differs, the oldest wait at which those who have come differ
 * still, or CW_SNAP_NONE. It need not be the oldest of all: by a call that was made twice the
 * histories are apart from there on, and calls of one kind in between meet and go through.
 */
static uint32_t differing_gate(const struct engine_context *s, uint32_t comm)
{
	uint32_t oldest = CW_SNAP_NONE;

	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];

		if (gate->comm != comm ||
		    (gate->kind != GATE_COLLECTIVE && gate->kind != GATE_ROOT) ||
		    gate->seq < s->alignments[comm].from_seq || !is_waited_at(s, gate) ||
		    !differs_there(s, gate))
			continue;
		if (oldest == CW_SNAP_NONE || gate->since_ns < s->g.gates[oldest].since_ns)
			oldest = i;
	}
	return oldest;
}

/* When somebody made the call that differs; INT64_MAX = not known. */
static int64_t differed_ns(const struct alignment *al)
{
	int64_t ns = INT64_MAX;

	for (uint32_t i = 0; i < al->n_sides; i++)
		if (al->sides[i].has_op && al->sides[i].op.enter_ns &&
		    al->sides[i].op.enter_ns < ns)
			ns = al->sides[i].op.enter_ns;
	return ns;
}

/*
 * After what time a call to which all have come does not open, where something was displaced
 * before: after several times of what calls of the communicator take, as far as they have a rhythm.
 */
static int64_t displaced_after_ns(const struct cw_snapshot *snap, uint32_t comm)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	const struct cw_thresholds *t = &snap->thresholds;
	int64_t ns = DISPLACED_SEEN_NS;

	for (uint32_t m = 0; m < c->nranks; m++) {
		int64_t interval_ns = c->members[m].interval_ns;

		/* Divided, not multiplied: the interval is untrusted and may be enormous. */
		if (interval_ns <= 0 || !t->stall_factor ||
		    interval_ns > t->stall_min_ns / t->stall_factor)
			return t->stall_min_ns;
		if (interval_ns * t->stall_factor > ns)
			ns = interval_ns * t->stall_factor;
	}
	return ns < t->stall_min_ns ? ns : t->stall_min_ns;
}

/*
 * What one member sent there and another did not take is still in the communicator's buffers, and
 * each later call takes what belongs to the one before, until one gets nothing: so a call that does
 * not open though everybody has come is held up by the one that differed, which all have completed.
 * That it does not open takes time to see, and what has gone on for long has got over it. The
 * oldest such wait, or CW_SNAP_NONE.
 */
static uint32_t displaced_gate(const struct engine_context *s, uint32_t comm)
{
	const struct alignment *al = &s->alignments[comm];
	int64_t differed = differed_ns(al);
	int64_t within_ns =
		differed > INT64_MAX - DISPLACES_FOR_NS ? INT64_MAX : differed + DISPLACES_FOR_NS;
	int64_t after_ns = displaced_after_ns(s->snap, comm);
	uint32_t oldest = CW_SNAP_NONE;
	bool is_displaced = false;

	for (uint32_t i = 1; al->is_proof && al->knows_call && i < al->n_sides; i++)
		is_displaced = is_displaced || (al->sides[i].has_op &&
						!moves_alike(&al->sides[0].op, &al->sides[i].op));
	for (uint32_t i = 0; is_displaced && i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];

		if (gate->comm != comm || gate->n_missing_all || gate->n_unseen ||
		    (gate->kind != GATE_COLLECTIVE && gate->kind != GATE_ROOT) ||
		    gate->seq <= al->seq || !gate->since_ns ||
		    s->snap->now_ns - gate->since_ns < after_ns || gate->since_ns > within_ns)
			continue;
		if (oldest == CW_SNAP_NONE || gate->since_ns < s->g.gates[oldest].since_ns)
			oldest = i;
	}
	return oldest;
}

/* Of a call that all are through: the wait that comes of it, or CW_SNAP_NONE. */
static uint32_t gate_behind(const struct engine_context *s, uint32_t comm)
{
	uint32_t gate = differing_gate(s, comm);

	return gate != CW_SNAP_NONE ? gate : displaced_gate(s, comm);
}

static void classify_mismatch(const struct engine_context *s, uint32_t comm, uint32_t gate,
			      struct finding *f)
{
	const struct alignment *al = &s->alignments[comm];

	*f = (struct finding){ .verdict_class = CW_CLASS_MISMATCH,
			       .detail = al->detail,
			       .is_proof = al->is_proof,
			       .node = CW_SNAP_NONE,
			       .rank = CW_SNAP_NONE,
			       .partner = CW_SNAP_NONE,
			       .gate = gate,
			       .comm = comm,
			       .seq = al->seq,
			       .since_ns = gate == CW_SNAP_NONE ? 0 : s->g.gates[gate].since_ns };
}

/* ---- messages that do not fit, and hold up nobody ---- */

/*
 * A proof of what is wrong with the data where sizes differ. What was left over at the end is
 * known, and is no more than that: nobody is the worse for it.
 */
static int find_messages(struct engine_context *s, uint32_t comm, struct finding *f,
			 bool *ret_found)
{
	struct message_fault *fault = cw_arena_new(&s->arena, struct message_fault);
	int r = fault ? messages_compare(s->snap, comm, &s->arena, fault) : -ENOMEM;

	*ret_found = r == 0 && fault->detail != CW_DETAIL_NONE;
	if (!*ret_found)
		return r;
	*f = (struct finding){ .verdict_class = CW_CLASS_P2P_UNMATCHED,
			       .detail = fault->detail,
			       .is_proof = fault->detail == CW_DETAIL_SIZE,
			       .node = CW_SNAP_NONE,
			       .rank = CW_SNAP_NONE,
			       .partner = CW_SNAP_NONE,
			       .gate = CW_SNAP_NONE,
			       .comm = comm,
			       .messages = fault };
	return 0;
}

/* ---- all of them ---- */

/*
 * Its node reports, and has said nothing of this rank for long: a daemon that has just come back
 * and has not found the rank's record again.
 */
static bool is_passed_over(const struct cw_snapshot *snap, const struct cw_snap_rank *r)
{
	return snap->nodes[r->node].last_digest_ns - r->sampled_ns >
	       snap->thresholds.node_silent_ns;
}

/*
 * What is not reported any more shows how a rank stood. That it was in a call to which everybody
 * has come says nothing: it will have left it long ago.
 */
static bool is_seen_shut(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snapshot *snap = s->snap;

	for (uint32_t i = 0; i < gate->n_waiters; i++) {
		const struct cw_snap_rank *r = &snap->ranks[gate->waiters[i]];

		if (r->node >= snap->n_nodes ||
		    (snap->nodes[r->node].state == CW_NODE_REPORTING && !is_passed_over(snap, r)))
			return true;
	}
	return false;
}

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Nothing moves there, as long as somebody waits. */
static bool is_stuck(const struct engine_context *s, const struct finding *f)
{
	const struct cw_snapshot *snap = s->snap;

	if (f->verdict_class == CW_CLASS_UNKNOWN || f->detail == CW_DETAIL_TRACED ||
	    f->detail == CW_DETAIL_FROZEN)
		return false;
	if (f->rank == CW_SNAP_NONE || f->verdict_class == CW_CLASS_PROCESS_DEAD ||
	    f->verdict_class == CW_CLASS_NODE_UNREACHABLE)
		return true;
	return snap->now_ns - max_ns(snap->ranks[f->rank].host_activity_ns, f->since_ns) >=
	       snap->thresholds.no_progress_after_ns;
}

static uint32_t tier_of(const struct engine_context *s, const struct finding *f)
{
	const struct cw_snapshot *snap = s->snap;
	int64_t patience = f->verdict_class == CW_CLASS_IN_COLLECTIVE
				   ? snap->thresholds.in_collective_ns
				   : snap->thresholds.stall_min_ns;
	bool is_old = f->since_ns && snap->now_ns - f->since_ns >= patience;

	if (f->messages)
		return TIER_SILENT_PROOF;
	if (f->is_proof)
		return f->gate == CW_SNAP_NONE ? TIER_SILENT_PROOF : TIER_PROOF;
	if (!is_old)
		return TIER_FRESH;
	return is_stuck(s, f) ? TIER_STUCK : TIER_OLD;
}

static void keep(struct engine_context *s, struct finding *f)
{
	f->tier = tier_of(s, f);
	s->findings[s->n_findings++] = *f;
}

/*
 * Ranks whose calls failed. Such a rank holds up the others even where it waits itself: it waits
 * for them in its next call, and they wait for it in the call that failed.
 */
static int find_failed_calls(struct engine_context *s)
{
	struct failed_call call;

	s->failed_at = cw_arena_new_array(&s->arena, uint32_t, (size_t)s->g.n_ranks + 1);
	if (!s->failed_at)
		return -ENOMEM;
	for (uint32_t r = 0; r < s->g.n_ranks; r++) {
		s->failed_at[r] = CW_SNAP_NONE;
		for (uint32_t i = s->g.miss_start[r]; i < s->g.miss_start[r + 1]; i++)
			if (s->failed_at[r] == CW_SNAP_NONE &&
			    engine_context_failed_call(s, s->g.misses[i], r, &call))
				s->failed_at[r] = s->g.misses[i];
	}
	return 0;
}

/*
 * By component: its circle closes by a wait for a call that failed, so none of its waits can end by
 * another. NULL = out of memory.
 */
static bool *cycles_closed_by_failure(struct engine_context *s)
{
	const struct waitgraph *g = &s->g;
	bool *is_closed = cw_arena_new_array(&s->arena, bool, (size_t)g->n_components + 1);

	for (uint32_t r = 0; is_closed && r < g->n_ranks; r++) {
		uint32_t at = s->failed_at[r];

		if (at != CW_SNAP_NONE &&
		    g->component[waitgraph_gate_node(g, at)] == g->component[r])
			is_closed[g->component[r]] = true;
	}
	return is_closed;
}

int culprit_find_all(struct engine_context *s)
{
	const struct waitgraph *g = &s->g;
	size_t most =
		(size_t)g->n_ranks + g->n_gates + g->n_components + 2 * (size_t)s->snap->n_comms;
	uint32_t *oldest = oldest_gates(s), *cycles = wait_cycle_names(s);
	bool *is_closed;
	struct finding f;

	s->findings = cw_arena_new_array(&s->arena, struct finding, most);
	if (!s->findings || !oldest || !cycles)
		return -ENOMEM;
	count_ended(s);
	if (find_who_gave_up(s) < 0 || death_order_note_losses(s) < 0 || find_failed_calls(s) < 0)
		return -ENOMEM;
	is_closed = cycles_closed_by_failure(s);
	if (!is_closed)
		return -ENOMEM;
	find_failed_first(s);
	for (uint32_t c = 0; c < s->snap->n_comms; c++)
		if (s->alignments[c].seq) {
			if (oldest[c] != CW_SNAP_NONE && all_completed(s, c, s->alignments[c].seq))
				oldest[c] = gate_behind(s, c);
			classify_mismatch(s, c, oldest[c], &f);
			keep(s, &f);
		}
	for (uint32_t k = 0; k < g->n_components; k++) {
		bool is_cycle = g->ranks_in[k] > 1 && cycles[k] != CW_SNAP_NONE && !is_closed[k];
		int r = is_cycle ? wait_cycle_judge(s, k) : WAIT_CYCLE_NONE;

		if (r < 0)
			return r;
		if (r == WAIT_CYCLE_NONE)
			continue;
		wait_cycle_classify(s, cycles[k], r == WAIT_CYCLE_REAL, &f);
		keep(s, &f);
	}
	for (uint32_t r = 0; r < g->n_ranks; r++)
		if (waitgraph_is_missing(g, r) &&
		    (!waitgraph_waits(g, r) || s->failed_at[r] != CW_SNAP_NONE) &&
		    classify_rank(s, r, &f))
			keep(s, &f);
	for (uint32_t i = 0; i < g->n_gates; i++)
		if (!g->gates[i].n_missing_all && is_seen_shut(s, &g->gates[i])) {
			blocked_collective_classify(s, i, &f);
			if (blocked_collective_compare_setup(s, i, &f) < 0)
				return -ENOMEM;
			keep(s, &f);
		}
	for (uint32_t c = 0; c < s->snap->n_comms; c++) {
		bool found;

		if (find_messages(s, c, &f, &found) < 0)
			return -ENOMEM;
		if (found)
			keep(s, &f);
	}
	return consequence_join(s);
}
