/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of the wait-for graph (analysis/waits/waitgraph.h), and the trouble at each end.
 *
 * A gate is a call in which ranks wait for the missing members. A path through the graph has one of
 * four ends:
 *
 *  - a rank that is missing at some gate and waits at no gate itself;
 *  - a gate that all members have come to and that does not open;
 *  - a gate whose missing members are not visible;
 *  - a cycle.
 *
 * We add the comms whose members made different calls, or whose messages do not fit, even if no
 * rank waits because of that.
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

/* Deaths within this time are one event. A death after this time does not explain the first one. */
#define ENDING_TOGETHER_NS (INT64_C(30) * 1000000000)
/*
 * A differing call blocks a later call only within this time. If no rank waited for so long, the
 * comm has recovered from it.
 */
#define DISPLACES_FOR_NS (INT64_C(60) * 1000000000)
/*
 * The shortest wait after which we call a call blocked. Two evaluations may see the same slow call,
 * so a shorter wait proves nothing.
 */
#define DISPLACED_SEEN_NS (INT64_C(2) * 1000000000)
/* Within this time after a death the daemon has read the dead rank's record once more. */
#define RECORD_SETTLED_NS (INT64_C(2) * 1000000000)

/* The longest time that a launcher grants its processes between a request to end and SIGKILL. */
#define GRACE_NS (INT64_C(60) * 1000000000)
/*
 * A cancel reaches all ranks of a job within this time: 30 s, and 2 s for the clocks of nodes and
 * the sampling of ends.
 */
#define CANCEL_LASTS_NS (INT64_C(32) * 1000000000)
/*
 * We examine an end on request after this time, in which most cancels have reached another rank.
 * The notice is due after 10 s, and needs two readings that are 2 s apart.
 */
#define ALONE_AFTER_NS (INT64_C(8) * 1000000000)

/*
 * True if the kernel's facts show that the rank failed by itself. When a launcher ends a job, ranks
 * do not end in these ways.
 */
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

/*
 * Counts the ranks that ended. Notes whether one process had all of them, and the first and last
 * time of an end.
 */
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

/* True if the rank aborted and, as far as we know, no other process sent it a signal. */
static bool has_aborted(const struct cw_snap_rank *r)
{
	return r->liveness == CW_LIVE_KILLED && r->term_signal == SIGABRT &&
	       (r->end_by == CW_END_BY_UNKNOWN || r->end_by == CW_END_BY_ITSELF);
}

/*
 * Notes the ranks that gave up: they aborted in a call in which they had waited for long. A job's
 * own watchdog aborts ranks that wait, and never the rank that they wait for. So a rank that waits
 * for a rank that gave up waits for the same culprit.
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

/*
 * True if the rank may have failed first: it is the first failed rank, or failed at the same time.
 */
static bool failed_with_first(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];

	if (rank == s->failed_first || s->failed_first == CW_SNAP_NONE)
		return s->failed_first != CW_SNAP_NONE;
	return cw_liveness_is_dead(r->liveness) && r->ended_ns && has_failed(r) &&
	       !death_order_is_before(&s->snap->ranks[s->failed_first], r);
}

/*
 * True if the rank seems to have failed by itself, but a launcher may have ended it. It exited with
 * an error and without facts from the kernel, or it aborted. Ranks of a cancelled job may abort
 * too.
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

/*
 * Returns the failed rank that ended first. If is_known is false, ranks that only seem to have
 * failed count too.
 */
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

/*
 * Finds the rank whose failure is the first end of the job. Later ends follow from it, because a
 * launcher ends the other ranks of its node after a failure. That is no shutdown: ranks of other
 * nodes hear of the failure late or never.
 */
static void find_failed_first(struct engine_context *s)
{
	const struct cw_snap_rank *ranks = s->snap->ranks;
	uint32_t known = find_earliest(s, true), seeming = find_earliest(s, false);
	bool is_known_first = known != CW_SNAP_NONE, is_seeming_first = seeming != CW_SNAP_NONE;

	for (uint32_t i = 0; i < s->snap->n_ranks; i++) {
		bool is_dead = cw_liveness_is_dead(ranks[i].liveness);

		/* A known failure is the first only if no rank ended surely before it. */
		if (is_known_first && is_dead && death_order_is_before(&ranks[i], &ranks[known]))
			is_known_first = false;
		/*
		 * A seeming failure is the first only if it came surely before all other ends and
		 * no launcher is gone. Then no process had asked the rank to end.
		 */
		if (is_seeming_first && !cw_snap_rank_shares_process(&ranks[seeming], &ranks[i]) &&
		    (is_dead ? !death_order_is_before(&ranks[seeming], &ranks[i])
			     : (ranks[i].flags & CW_RANKF_SHUTDOWN) != 0))
			is_seeming_first = false;
	}
	s->failed_first = is_known_first ? known : is_seeming_first ? seeming : CW_SNAP_NONE;
	for (uint32_t i = 0; s->failed_first != CW_SNAP_NONE && i < s->snap->n_ranks; i++)
		s->n_failed_first +=
			i == s->failed_first ||
			(failed_with_first(s, i) &&
			 !cw_snap_rank_shares_process(&ranks[s->failed_first], &ranks[i]));
}

/* ---- a rank that is missing and waits at no gate ---- */

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

/* True if the rank had certainly not completed the call that the gate stands for. */
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

/*
 * True if a request to end (SIGTERM, SIGINT) ended this rank and reached no other rank. A launcher
 * that cancels a job asks all ranks within CANCEL_LASTS_NS. Any other end within this time may
 * belong to a cancel. So may the end of a launcher.
 */
static bool was_asked_alone(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	const struct cw_ending end = { .liveness = r->liveness,
				       .exit_code = r->exit_code,
				       .term_signal = r->term_signal };

	if (!cw_ending_is_asked(&end) || !r->ended_ns ||
	    s->snap->now_ns - r->ended_ns < ALONE_AFTER_NS)
		return false;
	for (uint32_t i = 0; i < s->snap->n_ranks; i++) {
		const struct cw_snap_rank *o = &s->snap->ranks[i];
		bool is_dead = cw_liveness_is_dead(o->liveness);

		if (cw_snap_rank_shares_process(r, o))
			continue;
		if (!is_dead && o->flags & CW_RANKF_SHUTDOWN)
			return false;
		if (is_dead && o->ended_ns >= r->ended_ns - CANCEL_LASTS_NS &&
		    o->ended_ns <= r->ended_ns + CANCEL_LASTS_NS)
			return false;
	}
	return true;
}

/*
 * True if the rank ended by its own fault. When a launcher ends a job, ranks do not end in these
 * ways.
 */
static bool ended_by_itself(const struct engine_context *s, uint32_t rank)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];

	return has_failed(r) || (has_aborted(r) && !s->has_given_up[rank]);
}

/*
 * True if SIGKILL ended the rank soon after a rank of its node had given up. After such an abort a
 * launcher asks its other processes to end. It kills those that still run after a grace period.
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
 * Notes that NCCL returned an error to the rank in a call that other ranks wait in. The error is
 * why the rank does not come, and its later activity does not matter. If the error may follow from
 * the loss of a peer, the error proves nothing (is_late).
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

/*
 * Describes the death of a missing rank, and whether the death is the first and is a proof. Returns
 * false if the rank ended in a shutdown of the job: such an end explains nothing.
 */
static bool classify_dead(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	bool has_own_failure = f->has_failed && !f->is_late;
	bool is_first = failed_with_first(s, rank) || has_own_failure;
	bool was_asked = r->flags & CW_RANKF_SHUTDOWN ||
			 (s->has_given_up && s->has_given_up[rank]) ||
			 ended_after_who_gave_up(s, rank);
	bool is_record_final, died_alone;

	if (!is_first &&
	    ((was_asked && engine_context_may_be_ending(s) && !was_asked_alone(s, rank)) ||
	     (!ended_by_itself(s, rank) && engine_context_is_ending(s))))
		return false;
	f->verdict_class = CW_CLASS_PROCESS_DEAD;
	f->detail = how_it_ended(r);
	/*
	 * Two deaths within ENDING_TOGETHER_NS may be part of a shutdown. Then we do not call a
	 * death the first.
	 */
	died_alone = s->has_one_ended || s->last_end_ns - s->first_end_ns > ENDING_TOGETHER_NS;
	f->is_first = has_own_failure || (is_first && s->n_failed_first == 1) ||
		      (!was_asked && died_alone);
	/* If we read the record after the death, we have all that the rank wrote. */
	is_record_final =
		r->sampled_ns >= r->ended_ns || s->snap->now_ns - r->ended_ns > RECORD_SETTLED_NS;
	/*
	 * If several ranks failed, a failure is still proven, but we do not know which came first.
	 */
	f->is_proof = ((is_first && has_failed(r)) ||
		       (!was_asked && (f->is_first || ended_by_itself(s, rank)))) &&
		      is_record_final && had_not_completed(s, rank, &s->g.gates[f->gate]);
	f->is_proof = f->is_proof || has_own_failure;
	return true;
}

/* True if the device has not reached the op that the gate waits for, or an op before it. */
static bool is_behind(const struct engine_context *s, uint32_t rank, const struct gate *gate)
{
	uint32_t m = engine_context_comm_rank(s, gate->comm, rank);
	struct position p;

	if (m == CW_SNAP_NONE)
		return false;
	p = position_of(s->snap, &s->snap->comms[gate->comm].members[m]);
	/*
	 * The op may be earlier than the gate's, because the other members may have completed it
	 * without this rank.
	 */
	return (p.flags & POS_BEHIND) &&
	       (gate->kind == GATE_P2P || (p.op->coll_seq && p.op->coll_seq <= gate->seq));
}

/*
 * Finds why a live rank has not come. These are the possible reasons: its call failed; its process
 * is held; it left the comm; its device is stuck before the op; its host is in another call, or
 * outside of NCCL.
 */
static void classify_alive(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	const struct gate *gate = &s->g.gates[f->gate];
	const struct cw_op *behind = s->g.behind[rank];
	uint32_t m = engine_context_comm_rank(s, gate->comm, rank);
	uint32_t state =
		m == CW_SNAP_NONE ? CW_COMM_READY : s->snap->comms[gate->comm].members[m].state;
	bool is_device_stuck;

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
		return;
	}
	if (state == CW_COMM_DESTROYED || state == CW_COMM_ABORTED || state == CW_COMM_REVOKED) {
		f->detail = state == CW_COMM_DESTROYED ? CW_DETAIL_DESTROYED : CW_DETAIL_ABORTED;
		return;
	}
	if (f->verdict_class == CW_CLASS_INIT_STUCK) {
		f->detail = blocked_collective_host_detail(gate->op_kind);
		return;
	}
	is_device_stuck = is_behind(s, rank, gate);
	/*
	 * Other ranks may wait, on another comm, for an op that the rank's device does not reach.
	 * The host then waits for its device, and so does not make the other calls.
	 */
	for (uint32_t i = s->g.miss_start[rank]; !is_device_stuck && i < s->g.miss_start[rank + 1];
	     i++)
		if (is_behind(s, rank, &s->g.gates[s->g.misses[i]])) {
			f->gate = s->g.misses[i];
			is_device_stuck = true;
		}
	/*
	 * In any comm, the device may have failed to reach an op for long. Other members may have
	 * completed that op without this rank, as the root of a broadcast does. They then wait for
	 * the rank in a later call.
	 */
	if (!is_device_stuck)
		is_device_stuck =
			behind && behind->enter_ns &&
			s->snap->now_ns - behind->enter_ns >= s->snap->thresholds.stall_min_ns;
	if (is_device_stuck) {
		gate = &s->g.gates[f->gate];
		if (behind && (s->g.behind_comm[rank] != gate->comm || !gate->op ||
			       behind->coll_seq != gate->seq)) {
			f->held = behind;
			f->held_comm = s->g.behind_comm[rank];
		}
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

/*
 * True if other members have completed calls that the rank must have entered long after its node's
 * last digest. The rank has then worked on, and only the daemon of its node is unreachable.
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

/*
 * Describes why the missing rank does not come. Returns false if the rank turns out to be no
 * culprit.
 */
static bool classify_rank(const struct engine_context *s, uint32_t rank, struct finding *f)
{
	const struct cw_snap_rank *r = &s->snap->ranks[rank];
	uint32_t node_state =
		r->node < s->snap->n_nodes ? s->snap->nodes[r->node].state : CW_NODE_REPORTING;
	const struct gate *gate;
	uint32_t unobserved;

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
		/*
		 * An unobserved op may block the host, or the stream before the op that the others
		 * wait for.
		 */
		unobserved = engine_context_unobserved(s, rank);
		if (unobserved != CW_SNAP_NONE && !f->has_failed &&
		    (f->verdict_class == CW_CLASS_DEVICE_STALLED || unobserved != f->comm)) {
			f->verdict_class = CW_CLASS_UNKNOWN;
			f->detail = CW_DETAIL_PROGRESS_UNTRACKED;
		}
		return true;
	}
}

/* ---- comms whose members made different calls ---- */

/*
 * True if ranks really wait at the gate. If a rank has no progress on the device, its record always
 * shows it in its newest call, even if it is not blocked. Only a rank that stays in the call for
 * stall_min_ns waits there.
 */
static bool is_waited_at(const struct engine_context *s, const struct gate *gate)
{
	return gate->n_soft < gate->n_waiters ||
	       (gate->since_ns &&
		s->snap->now_ns - gate->since_ns >= s->snap->thresholds.stall_min_ns);
}

/*
 * True if the members that have come to the gate made calls of different kinds there. After one
 * member has omitted a call, the next few calls may still complete, each with the data of another
 * call. We compare calls outside of groups that are a member's pending or last op.
 */
static bool differs_there(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	const struct cw_op *first = NULL;

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_op *ends[] = { c->members[m].pending, c->members[m].last };
		const struct cw_op *op = NULL;

		for (unsigned k = 0; k < 2 && !op && c->members[m].rank != CW_SNAP_NONE; k++)
			if (ends[k] && position_is_step(ends[k]) &&
			    ends[k]->coll_seq == gate->seq && !(ends[k]->flags & CW_OPF_GROUPED))
				op = ends[k];
		if (op && first && (op->kind != first->kind || op->root != first->root))
			return true;
		first = op ? op : first;
	}
	return false;
}

/*
 * Finds, for each comm, the gate with the oldest wait at or after the differing call; CW_SNAP_NONE
 * = no rank waits because of that call. Returns NULL if out of memory.
 */
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
 * Returns the gate with the oldest wait at which the members' calls differ; CW_SNAP_NONE = none. We
 * need it if all members have completed the first differing call. An older gate may exist at which
 * the calls are of the same kind: if a member made a call twice, all later calls are shifted, and
 * calls of the same kind complete.
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

/*
 * Returns the wait after which we call a call blocked by displaced data (displaced_gate()). The
 * wait is several times the usual interval of the comm's calls, if we know the interval.
 */
static int64_t displaced_after_ns(const struct cw_snapshot *snap, uint32_t comm)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	const struct cw_thresholds *t = &snap->thresholds;
	int64_t ns = DISPLACED_SEEN_NS;

	for (uint32_t m = 0; m < c->nranks; m++) {
		int64_t interval_ns = c->members[m].interval_ns;

		/* We divide, because the interval is untrusted and a product could overflow. */
		if (interval_ns <= 0 || !t->stall_factor ||
		    interval_ns > t->stall_min_ns / t->stall_factor)
			return t->stall_min_ns;
		if (interval_ns * t->stall_factor > ns)
			ns = interval_ns * t->stall_factor;
	}
	return ns < t->stall_min_ns ? ns : t->stall_min_ns;
}

/*
 * Returns the gate with the oldest wait behind displaced data; CW_SNAP_NONE = none. If calls
 * differ, data that one member sent and no member took stay in the communicator's buffers. Each
 * later call takes data of the call before it, until one call gets none. So the differing call
 * blocks a later call. By then all members have completed the differing call and entered the
 * blocked one. Only a long wait shows that a call is blocked. A comm that has worked for
 * DISPLACES_FOR_NS since the difference has recovered from it.
 */
static uint32_t displaced_gate(const struct engine_context *s, uint32_t comm)
{
	const struct alignment *al = &s->alignments[comm];
	int64_t differed = INT64_MAX; /* time of the first member's call; INT64_MAX = unknown */
	int64_t within_ns, after_ns = displaced_after_ns(s->snap, comm);
	uint32_t oldest = CW_SNAP_NONE;
	bool is_displaced = false;

	for (uint32_t i = 0; i < al->n_sides; i++)
		if (al->sides[i].has_op && al->sides[i].op.enter_ns &&
		    al->sides[i].op.enter_ns < differed)
			differed = al->sides[i].op.enter_ns;
	within_ns =
		differed > INT64_MAX - DISPLACES_FOR_NS ? INT64_MAX : differed + DISPLACES_FOR_NS;
	/*
	 * Calls with another type or operator may move the same bytes in the same way. These
	 * displace no data.
	 */
	for (uint32_t i = 1; al->is_proof && al->knows_call && i < al->n_sides; i++) {
		const struct cw_op *a = &al->sides[0].op, *b = &al->sides[i].op;

		is_displaced = is_displaced ||
			       (al->sides[i].has_op &&
				(a->kind != b->kind || a->root != b->root || a->bytes != b->bytes));
	}
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

/*
 * Describes the comm's differing calls. `gate` is the oldest gate behind them; CW_SNAP_NONE = none.
 * If all members have completed the differing call, they wait in a later call now. We then search
 * for a wait that follows from the difference.
 */
static void classify_mismatch(const struct engine_context *s, uint32_t comm, uint32_t gate,
			      struct finding *f)
{
	const struct alignment *al = &s->alignments[comm];
	const struct cw_snap_comm *c = &s->snap->comms[comm];
	bool all_completed = true;

	for (uint32_t m = 0; m < c->nranks && gate != CW_SNAP_NONE && all_completed; m++)
		all_completed = c->members[m].rank != CW_SNAP_NONE &&
				(c->members[m].known & CW_KNOWN_COMPLETED) &&
				c->members[m].coll_completed >= al->seq;
	if (gate != CW_SNAP_NONE && all_completed) {
		gate = differing_gate(s, comm);
		if (gate == CW_SNAP_NONE)
			gate = displaced_gate(s, comm);
	}
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

/* ---- messages that do not fit and block no rank ---- */

/*
 * Finds the fault of the comm's messages. Different sizes prove that data are wrong. A message that
 * is left over at the end is no proof of a fault: it did no harm.
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

/* ---- all findings ---- */

/*
 * True if some waiter of the gate is still reported. A rank without reports may last have been in a
 * call that all members had entered, but it will have left that call long ago. A node that reports
 * may still lack the rank: its daemon restarted and has not found the rank's record again.
 */
static bool is_seen_shut(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snapshot *snap = s->snap;

	for (uint32_t i = 0; i < gate->n_waiters; i++) {
		const struct cw_snap_rank *r = &snap->ranks[gate->waiters[i]];

		if (r->node >= snap->n_nodes)
			return true;
		if (snap->nodes[r->node].state == CW_NODE_REPORTING &&
		    snap->nodes[r->node].last_digest_ns - r->sampled_ns <=
			    snap->thresholds.node_silent_ns)
			return true;
	}
	return false;
}

/*
 * Returns how much attention the finding deserves. A finding is stuck if ranks wait and nothing
 * moves. Then there is no culprit that could move, or the culprit shows no host activity.
 */
static uint32_t tier_of(const struct engine_context *s, const struct finding *f)
{
	const struct cw_snapshot *snap = s->snap;
	int64_t patience = f->verdict_class == CW_CLASS_IN_COLLECTIVE
				   ? snap->thresholds.in_collective_ns
				   : snap->thresholds.stall_min_ns;
	bool is_old = f->since_ns && snap->now_ns - f->since_ns >= patience;
	int64_t moved_ns;

	if (f->messages)
		return TIER_SILENT_PROOF;
	if (f->is_proof)
		return f->gate == CW_SNAP_NONE ? TIER_SILENT_PROOF : TIER_PROOF;
	if (!is_old)
		return TIER_FRESH;
	if (f->verdict_class == CW_CLASS_UNKNOWN || f->detail == CW_DETAIL_TRACED ||
	    f->detail == CW_DETAIL_FROZEN || f->detail == CW_DETAIL_PAIR)
		return TIER_OLD;
	if (f->rank == CW_SNAP_NONE || f->verdict_class == CW_CLASS_PROCESS_DEAD ||
	    f->verdict_class == CW_CLASS_NODE_UNREACHABLE)
		return TIER_STUCK;
	moved_ns = snap->ranks[f->rank].host_activity_ns;
	if (moved_ns < f->since_ns)
		moved_ns = f->since_ns;
	return snap->now_ns - moved_ns >= snap->thresholds.no_progress_after_ns ? TIER_STUCK
										: TIER_OLD;
}

static void keep(struct engine_context *s, struct finding *f)
{
	f->tier = tier_of(s, f);
	s->findings[s->n_findings++] = *f;
}

/*
 * Notes the ranks whose calls failed. Such a rank blocks the others even if it waits itself. It
 * waits for them in its next call, and they wait for it in the failed call.
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
 * Notes, for each component, whether a wait for a failed call closes its cycle. No wait of such a
 * cycle can end because another one ends. Returns NULL if out of memory.
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

/*
 * Finds all ends in this order: comms with differing calls, cycles, missing ranks, gates that all
 * members have come to, and messages. Then it joins deaths to the differing calls that may explain
 * them.
 */
int culprit_find_all(struct engine_context *s)
{
	const struct waitgraph *g = &s->g;
	size_t most =
		(size_t)g->n_ranks + g->n_gates + g->n_components + 2 * (size_t)s->snap->n_comms;
	uint32_t *oldest = oldest_gates(s), *cycles = wait_cycle_names(s);
	uint32_t unlisted;
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
		if (wait_cycle_unlisted(s, k, &unlisted) < 0)
			return -ENOMEM;
		if (unlisted == CW_SNAP_NONE)
			wait_cycle_classify(s, cycles[k], r == WAIT_CYCLE_REAL, &f);
		else
			wait_cycle_classify_pair(s, unlisted, &f);
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
			if (blocked_collective_compare_setup(s, i, &f) < 0 ||
			    blocked_collective_judge_connections(s, i, &f) < 0)
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
