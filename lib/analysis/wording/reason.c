/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/reason.h"

#include <string.h>

#include "analysis/align/position.h"
#include "analysis/wording/arg.h"

/*
 * Shorter times are reported as less than this. They are only the time between two samples of a
 * process.
 */
#define JUST_NOW_NS INT64_C(1000000000)

/* With more culprits than this, the cause is not a wrong colour that one rank passed to a split. */
#define COLOURS_MAX 8

static const struct cw_snap_member *member_at(const struct diagnosis *diag, uint32_t rank)
{
	uint32_t m;

	if (diag->v->comm == CW_SNAP_NONE)
		return NULL;
	m = engine_context_comm_rank(diag->s, diag->v->comm, rank);
	return m == CW_SNAP_NONE ? NULL : &diag->s->snap->comms[diag->v->comm].members[m];
}

/* True if the rank's process has ended. The sentence about a dead rank says where it was. */
static bool is_dead(const struct diagnosis *diag, uint32_t rank)
{
	return cw_liveness_is_dead(diag->s->snap->ranks[rank].liveness);
}

bool reason_died_inside(const struct diagnosis *diag, uint32_t rank)
{
	const struct cw_snap_member *m = member_at(diag, rank);
	const struct gate *gate =
		diag->main->gate == CW_SNAP_NONE ? NULL : &diag->s->g.gates[diag->main->gate];

	if (!is_dead(diag, rank) || !m || !gate)
		return false;
	if (gate->kind == GATE_INIT)
		return position_of(diag->s->snap, m).flags & POS_INIT;
	if (!m->last || (m->last->flags & CW_OPF_RETURNED))
		return false;
	return gate->kind == GATE_HOST
		       ? m->last->kind == gate->op_kind
		       : diag->v->coll_seq && m->last->coll_seq == diag->v->coll_seq;
}

bool reason_has_entered(const struct diagnosis *diag, uint32_t rank)
{
	const struct cw_snap_member *m = member_at(diag, rank);

	return m && diag->v->coll_seq && (m->known & CW_KNOWN_ENTERED) &&
	       m->coll_entered >= diag->v->coll_seq;
}

static bool is_behind_on_device(const struct diagnosis *diag, const struct cw_snap_member *m)
{
	return diag->v->coll_seq && (m->known & CW_KNOWN_COMPLETED) &&
	       m->coll_completed < diag->v->coll_seq;
}

/*
 * Says "; its last call on tp, all_reduce #41, returned 12 s ago" or "; its last call on tp,
 * all_reduce, failed 12 s ago".
 */
static void say_last_call(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_snap_member *m = member_at(diag, rank);
	struct cw_arg comm, call;

	if (!m || !m->last)
		return;
	comm = arg_comm(diag, diag->v->comm);
	call = arg_call(diag, diag->v->comm, m->last);
	if (position_has_failed(m->last)) {
		/* NCCL did not accept the call, so it has no number and no device runs it. */
		cw_say(clause, last_call_failed, comm, arg_kind(m->last->kind),
		       arg_since(diag, m->last->return_ns));
	} else if (m->last->flags & CW_OPF_RETURNED) {
		cw_say(clause, last_call_returned, comm, call, arg_since(diag, m->last->return_ns));
		/*
		 * Without the device's progress, the sentence would read as if the rank had
		 * completed the call that the others wait in.
		 */
		if (m->last->coll_seq >= diag->v->coll_seq && is_behind_on_device(diag, m))
			cw_say(clause, device_had_only_done, arg_count(m->coll_completed));
	} else if (is_dead(diag, rank)) {
		cw_say(clause, was_inside_on, call, comm);
	} else {
		cw_say(clause, is_inside_on, call, comm);
	}
}

/*
 * Says "ncclCommInitRank failed 12 s ago with ncclSystemError (…)". If is_past is true, says "… had
 * failed …".
 */
static void say_failed_call(const struct diagnosis *diag, uint32_t rank, bool is_past,
			    struct cw_clause *clause)
{
	struct cw_arg kind, since, error;
	struct failed_call call;

	if (!diag->main->has_failed ||
	    !engine_context_failed_call(diag->s, diag->main->gate, rank, &call))
		return;
	kind = arg_kind(call.kind);
	since = arg_since(diag, call.ns);
	error = arg_error(diag, call.result, call.text);
	if (is_past && call.ns)
		cw_say(clause, call_had_failed_ago, kind, since, error);
	else if (is_past)
		cw_say(clause, call_had_failed, kind, error);
	else if (call.ns)
		cw_say(clause, call_failed_ago, kind, since, error);
	else
		cw_say(clause, call_failed, kind, error);
}

/*
 * True if other ranks share the process. Then we do not know which of these ranks the facts about
 * the process concern.
 */
static bool is_one_of_several(const struct cw_snapshot *snap, uint32_t rank)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (i != rank && cw_snap_rank_shares_process(&snap->ranks[i], &snap->ranks[rank]))
			return true;
	return false;
}

static void say_host_activity(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	const char *by = r->host_activity_by ? r->host_activity_by : "";
	struct cw_clause activity = clause_of(diag);
	struct cw_arg since = arg_since(diag, r->host_activity_ns);

	if (!r->host_activity_ns)
		return;
	if (diag->s->snap->now_ns - r->host_activity_ns < JUST_NOW_NS)
		since = arg_less_than(JUST_NOW_NS);
	if (strcmp(by, "cpu") == 0)
		cw_say(&activity, used_cpu, since);
	else if (strcmp(by, "io") == 0)
		cw_say(&activity, did_io, since);
	else if (strcmp(by, "child") == 0)
		cw_say(&activity, had_a_child, since);
	else if (strcmp(by, "nccl") == 0)
		cw_say(&activity, called_nccl, since);
	else if (*by)
		cw_say(&activity, worked, since);
	/*
	 * We only know the time since the first sample, so the rank may have been idle for longer.
	 */
	else
		cw_say(&activity, has_not_worked, since);
	if (is_one_of_several(diag->s->snap, rank))
		cw_say(clause, its_process, arg_clause(&activity));
	else
		cw_say(clause, also, arg_clause(&activity));
}

/* Says the kind of the host's wait, because it decides whether we page a person. */
static void say_host_wait(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];

	if (r->liveness != CW_LIVE_ALIVE ||
	    diag->s->snap->now_ns - r->host_activity_ns < JUST_NOW_NS)
		return;
	switch (r->host_wait) {
	case CW_HOST_WAIT_LOCK:
		cw_say(clause, waits_for_thread);
		break;
	case CW_HOST_WAIT_GIL:
		cw_say(clause, waits_for_gil);
		break;
	case CW_HOST_WAIT_QUEUE:
		cw_say(clause, waits_for_event);
		break;
	case CW_HOST_WAIT_SOCKET:
		cw_say(clause, waits_for_socket);
		break;
	case CW_HOST_WAIT_TTY:
		cw_say(clause, waits_for_terminal);
		break;
	case CW_HOST_WAIT_STORAGE:
		cw_say(clause, waits_for_storage);
		break;
	default:
		break;
	}
}

struct cw_clause reason_of_death(const struct diagnosis *diag, const struct cw_snap_rank *r)
{
	struct cw_clause how = clause_of(diag);

	if (r->cause && *r->cause)
		cw_say(&how, text, arg_text(diag, r->cause)); /* the sentence needs no more */
	else if (r->flags & CW_RANKF_OOM_KILLED)
		cw_say(&how, oom_killed);
	else if (r->liveness == CW_LIVE_KILLED)
		cw_say(&how, killed_by, arg_number(CW_ARG_SIGNAL, r->term_signal));
	else if (r->liveness == CW_LIVE_EXITED)
		cw_say(&how, exited, arg_number(CW_ARG_NUMBER, r->exit_code));
	return how;
}

static void say_death(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	struct cw_clause how = reason_of_death(diag, r), failed = clause_of(diag);
	bool needs_comma =
		r->cause || (r->liveness == CW_LIVE_EXITED && !(r->flags & CW_RANKF_OOM_KILLED));

	if (!how.n)
		cw_say(&how, process_has_ended);
	if (!r->ended_ns)
		cw_clause_append(clause, &how);
	else if (needs_comma)
		cw_say(clause, that_then_ago, arg_clause(&how), arg_since(diag, r->ended_ns));
	else
		cw_say(clause, that_ago, arg_clause(&how), arg_since(diag, r->ended_ns));
	if (diag->v->has_failed_call) {
		say_failed_call(diag, rank, true, &failed);
		cw_say(clause, also, arg_clause(&failed));
		return;
	}
	say_last_call(diag, rank, clause);
}

/* Returns the gate at which the rank waits; NULL = the rank waits at none. */
static const struct gate *gate_of(const struct diagnosis *diag, uint32_t rank)
{
	const struct waitgraph *g = &diag->s->g;

	return waitgraph_waits(g, rank) ? &g->gates[g->waits[g->wait_start[rank]]] : NULL;
}

/* Names the call that the rank is inside, while other ranks wait for it in another call. */
static void say_other_call(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct gate *gate = gate_of(diag, rank);

	if (gate)
		cw_say(clause, inside_waits_for_none, arg_call(diag, gate->comm, gate->op),
		       arg_comm(diag, gate->comm));
	else
		cw_say(clause, inside,
		       arg_call(diag, CW_SNAP_NONE, &diag->s->snap->ranks[rank].host_call));
}

struct cw_clause reason_of_halt(const struct diagnosis *diag, uint32_t rank)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	enum cw_detail by = cw_rank_held_by(r);
	struct cw_clause how = clause_of(diag);

	/* The node of the rank knows the sender of the signal, the debugger or the cgroup. */
	if (by != CW_DETAIL_NONE && r->cause && *r->cause)
		cw_say(&how, text, arg_text(diag, r->cause));
	else if (by == CW_DETAIL_STOPPED)
		cw_say(&how, stopped);
	else if (by == CW_DETAIL_TRACED)
		cw_say(&how, held_by_debugger);
	else if (by == CW_DETAIL_FROZEN)
		cw_say(&how, frozen);
	return how;
}

struct cw_clause reason_of_place(const struct diagnosis *diag, uint32_t rank)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	const struct cw_snap_member *m = member_at(diag, rank);
	const struct cw_op *in = m && m->pending ? m->pending : &r->host_call;
	const struct gate *gate = gate_of(diag, rank);
	struct cw_clause place = clause_of(diag);

	if (r->liveness == CW_LIVE_STOPPED && r->cause)
		cw_say(&place, text, arg_text(diag, r->cause));
	else if (r->liveness == CW_LIVE_STOPPED)
		cw_say(&place, stopped);
	else if (r->liveness == CW_LIVE_TRACED)
		cw_say(&place, held_by_debugger);
	else if (r->liveness == CW_LIVE_ALIVE && gate && gate->op)
		cw_say(&place, inside_on, arg_call(diag, gate->comm, gate->op),
		       arg_comm(diag, gate->comm));
	else if (r->liveness == CW_LIVE_ALIVE && in->kind != CW_OP_NONE)
		cw_say(&place, inside, arg_kind(in->kind));
	else if (r->liveness == CW_LIVE_ALIVE)
		cw_say(&place, outside_nccl);
	return place;
}

static void say_failed(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	struct cw_clause place = reason_of_place(diag, rank);

	say_failed_call(diag, rank, false, clause);
	if (place.n)
		cw_say(clause, alive_at, arg_clause(&place));
	say_host_activity(diag, rank, clause);
	say_host_wait(diag, rank, clause);
}

static void say_alive(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	enum cw_detail detail = diag->v->detail;
	struct cw_clause halt = reason_of_halt(diag, rank);
	/* Recordings do not show whether a process is alive. */
	bool is_alive = diag->s->snap->ranks[rank].liveness != CW_LIVE_UNKNOWN;

	if (halt.n)
		cw_clause_append(clause, &halt);
	else if (detail == CW_DETAIL_INSIDE_OTHER_CALL)
		say_other_call(diag, rank, clause);
	else if ((detail == CW_DETAIL_ABORTED || detail == CW_DETAIL_DESTROYED) && is_alive)
		cw_say(clause, alive_has_left, arg_number(CW_ARG_DETAIL, (int32_t)detail));
	else if (detail == CW_DETAIL_ABORTED || detail == CW_DETAIL_DESTROYED)
		cw_say(clause, has_left, arg_number(CW_ARG_DETAIL, (int32_t)detail));
	else if (is_alive)
		cw_say(clause, alive_outside_nccl);
	else
		cw_say(clause, outside_nccl);
	if (diag->s->snap->ranks[rank].flags & CW_RANKF_D_STATE)
		cw_say(clause, in_state_d);
	say_last_call(diag, rank, clause);
	say_host_activity(diag, rank, clause);
	if (detail == CW_DETAIL_OUTSIDE_NCCL)
		say_host_wait(diag, rank, clause);
}

/*
 * Returns the size that the comm would have after an even split of its parent, if the comm is
 * larger than that. Returns 0 if the comm is not larger, has no parent, or if we do not know some
 * group of that split.
 *
 * NCCL accepts any colour. A rank that passes a wrong colour joins another group than its program
 * expects, and both groups then have unexpected sizes. Uneven splits are legal, so an uneven size
 * proves nothing. Together with calls that differ, it shows where to look.
 */
static uint32_t evenly_split_size(const struct cw_snapshot *snap, uint32_t comm)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	uint64_t members = 0, groups = 0, parent = 0;

	if (!c->parent_id || !c->split_ordinal)
		return 0;
	for (uint32_t i = 0; i < snap->n_comms; i++) {
		const struct cw_snap_comm *o = &snap->comms[i];

		if (o->id == c->parent_id && !parent)
			parent = o->nranks;
		if (o->parent_id != c->parent_id || o->split_ordinal != c->split_ordinal ||
		    o->instance != c->instance)
			continue;
		members += o->nranks;
		groups++;
	}
	if (members != parent || members % groups || c->nranks <= members / groups)
		return 0;
	return (uint32_t)(members / groups);
}

/*
 * Says that the culprits may have passed a wrong colour to the split. We say this if the group has
 * too many members for an even split, and the number of surplus members equals the number of
 * culprits.
 */
static void say_colour(const struct diagnosis *diag, struct cw_clause *clause)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t even, nranks = snap->comms[diag->v->comm].nranks;

	if (diag->v->n_culprits > COLOURS_MAX)
		return;
	even = evenly_split_size(snap, diag->v->comm);
	if (even && nranks - even == diag->v->n_culprits)
		cw_say(clause, check_colour, arg_count(nranks), arg_count(even));
}

static void say_own_call(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_verdict *v = diag->v;

	if (diag->main->setup) {
		say_trait(diag, v->comm, rank, v->detail, clause);
		return;
	}
	if (!diag->s->alignments[diag->main->comm].knows_call) {
		cw_say(clause, calls_differ_at, arg_count(v->coll_seq));
		if (v->after_seq)
			cw_say(clause, were_same_until, arg_count(v->after_seq));
		return;
	}
	for (uint32_t i = 0; i < v->n_sides; i++)
		for (uint32_t k = 0; v->sides[i].has_op && k < v->sides[i].n_ranks; k++)
			if (v->sides[i].ranks[k] == rank) {
				cw_say(clause, called, arg_op(&v->sides[i].op));
				say_colour(diag, clause);
				return;
			}
}

static void say_pending(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_snap_member *m = member_at(diag, rank);

	if (m && m->pending && is_dead(diag, rank))
		cw_say(clause, was_inside_op, arg_op(m->pending));
	else if (m && m->pending)
		cw_say(clause, inside_op, arg_op(m->pending));
	else
		cw_say(clause, posted_other_size);
}

static void say_wait(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct gate *gate = gate_of(diag, rank);

	if (gate)
		cw_say(clause, waits_elsewhere, arg_call(diag, gate->comm, gate->op),
		       arg_comm(diag, gate->comm));
}

/*
 * Says that the rank did not finish the call. That is all we know: it may also wait for data of
 * another rank that did not finish.
 */
static void say_unfinished(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_snap_member *m = member_at(diag, rank);
	uint32_t partner = diag->main->partner;

	if (partner != CW_SNAP_NONE && m && m->pending && m->pending->kind == CW_OP_SEND)
		cw_say(clause, did_not_send, arg_rank(diag, partner));
	else if (partner != CW_SNAP_NONE)
		cw_say(clause, did_not_receive, arg_rank(diag, partner));
	else if (m && m->pending)
		cw_say(clause, did_not_finish, arg_call(diag, diag->v->comm, m->pending));
	else
		cw_say(clause, did_not_finish_call);
	say_host_activity(diag, rank, clause);
}

/* Says where a rank of a message is that one of its two ranks does not finish. */
static void say_pair(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_snap_member *m = member_at(diag, rank);

	if (m && m->pending)
		cw_say(clause, inside_op, arg_op(m->pending));
	else
		say_wait(diag, rank, clause);
}

/*
 * Says what is wrong with the rank's messages. If the two sizes of a message differ, we do not know
 * which of the two ranks is wrong.
 */
static void say_messages(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct message_fault *f = diag->main->messages;
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->main->comm];
	bool is_sender = c->members[f->sender].rank == rank;
	bool is_of_pair = is_sender || c->members[f->receiver].rank == rank;

	if (f->detail == CW_DETAIL_NOT_POSTED && !is_of_pair)
		cw_say(clause, omitted_calls);
	else if (f->detail == CW_DETAIL_NOT_POSTED && is_sender)
		cw_say(clause, omitted_sends);
	else if (f->detail == CW_DETAIL_NOT_POSTED)
		cw_say(clause, omitted_receives);
	else if (f->send && is_sender)
		cw_say(clause, sent_bytes, arg_count(f->send->bytes), arg_count(f->send->p2p_seq));
	else if (f->send && is_of_pair)
		cw_say(clause, received_bytes, arg_count(f->recv->bytes),
		       arg_count(f->send->p2p_seq));
	else
		cw_say(clause, other_message_sizes);
}

/* Says the state of the rank's connections. */
static void say_connections(const struct diagnosis *diag, uint32_t rank, struct cw_clause *clause)
{
	const struct cw_link *l = &diag->v->link;

	if (l->is_set && rank == l->sender)
		cw_say(clause, sent_steps, arg_count(l->handed), arg_count(l->steps),
		       arg_count(l->confirmed));
	else if (l->is_set)
		cw_say(clause, received_steps, arg_count(l->received), arg_count(l->steps));
	else if (diag->v->detail == CW_DETAIL_GPU_NOT_CONSUMING)
		cw_say(clause, left_data_in_buffer);
	else if (diag->v->detail == CW_DETAIL_GPU_NOT_PRODUCING)
		cw_say(clause, sends_nothing);
	else
		cw_say(clause, did_not_reach_proxy);
	say_host_activity(diag, rank, clause);
}

void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[c->rank];
	struct cw_clause *clause = &c->said;

	*clause = clause_of(diag);
	switch (diag->v->verdict_class) {
	case CW_CLASS_PROCESS_DEAD:
		say_death(diag, c->rank, clause);
		break;
	case CW_CLASS_NODE_UNREACHABLE:
		cw_say(clause, node_stopped_reporting, arg_host(diag, r->node));
		break;
	case CW_CLASS_MISMATCH:
		say_own_call(diag, c->rank, clause);
		break;
	case CW_CLASS_P2P_UNMATCHED:
		if (diag->main->messages)
			say_messages(diag, c->rank, clause);
		else if (diag->main->is_uneven)
			cw_say(clause, size_at_odds);
		else if (diag->main->partner != CW_SNAP_NONE)
			say_pending(diag, c->rank, clause);
		else if (diag->v->detail == CW_DETAIL_NOT_POSTED)
			say_wait(diag, c->rank, clause);
		else
			say_alive(diag, c->rank, clause);
		break;
	case CW_CLASS_UNKNOWN:
		if (arg_is_empty_recording(r))
			cw_say(clause, left_empty_recording);
		else
			cw_say(clause, left_no_recording);
		break;
	case CW_CLASS_DEADLOCK:
		say_wait(diag, c->rank, clause);
		break;
	case CW_CLASS_IN_COLLECTIVE:
		if (diag->main->connections)
			say_connections(diag, c->rank, clause);
		else if (diag->v->detail == CW_DETAIL_UNFINISHED)
			say_unfinished(diag, c->rank, clause);
		else if (diag->v->detail == CW_DETAIL_PAIR)
			say_pair(diag, c->rank, clause);
		else
			say_alive(diag, c->rank, clause);
		break;
	case CW_CLASS_DEVICE_STALLED:
		cw_say(clause, stream_is_stuck);
		say_host_activity(diag, c->rank, clause);
		break;
	default:
		if (diag->v->detail == CW_DETAIL_FAILED)
			say_failed(diag, c->rank, clause);
		else
			say_alive(diag, c->rank, clause);
		break;
	}
}
