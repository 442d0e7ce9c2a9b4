/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/align/position.h"
#include "analysis/wording/phrase.h"
#include "common/text.h"
#include "model/death.h"

/* We do not report the milliseconds between two samples of a process. */
#define JUST_NOW_NS INT64_C(1000000000)

/* Our own kernel facts are shorter, but a text from a peer may be longer. */
#define CAUSE_BYTES 160
/* With more culprits than this, the cause is not a wrong colour given by one rank. */
#define COLOURS_MAX 8

static const struct cw_snap_member *member_at(const struct diagnosis *diag, uint32_t rank)
{
	uint32_t m;

	if (diag->v->comm == CW_SNAP_NONE)
		return NULL;
	m = engine_context_comm_rank(diag->s, diag->v->comm, rank);
	return m == CW_SNAP_NONE ? NULL : &diag->s->snap->comms[diag->v->comm].members[m];
}

/* For dead ranks the sentence says where they were instead. */
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

/* "; its last call on tp, all_reduce #41, returned 12 s ago", or "…, all_reduce, failed 12 s ago"
 */
static void add_last_call(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_member *m = member_at(diag, rank);
	struct phrase call, time, comm;

	if (!m || !m->last)
		return;
	(void)phrase_comm(diag->s->snap, diag->v->comm, &comm);
	if (position_has_failed(m->last)) {
		/* NCCL did not accept the call: it has no number, and no device runs it. */
		cw_text_append(buf, len, "; its last call on %s, %s, failed %s ago", comm.text,
			       cw_op_kind_name(m->last->kind),
			       phrase_since(diag->s->snap, m->last->return_ns, &time));
	} else if (m->last->flags & CW_OPF_RETURNED) {
		cw_text_append(buf, len, "; its last call on %s, %s, returned %s ago", comm.text,
			       phrase_call(diag->s->snap, diag->v->comm, m->last, &call),
			       phrase_since(diag->s->snap, m->last->return_ns, &time));
		/*
		 * Without this, the sentence would read as if the rank had done the call that the
		 * others wait in.
		 */
		if (m->last->coll_seq >= diag->v->coll_seq && is_behind_on_device(diag, m))
			cw_text_append(buf, len, ", but its device had only done #%" PRIu64,
				       m->coll_completed);
	} else {
		cw_text_append(
			buf, len, "; it %s inside %s on %s", is_dead(diag, rank) ? "was" : "is",
			phrase_call(diag->s->snap, diag->v->comm, m->last, &call), comm.text);
	}
}

/* "ncclCommInitRank failed 12 s ago with ncclSystemError (…)", or "… had failed …" */
static bool add_failed_call(const struct diagnosis *diag, uint32_t rank, const char *had, char *buf,
			    size_t len)
{
	struct phrase error, time;
	struct failed_call call;

	if (!diag->main->has_failed ||
	    !engine_context_failed_call(diag->s, diag->main->gate, rank, &call))
		return false;
	cw_text_append(buf, len, "%s %sfailed ", phrase_kind(call.kind), had);
	if (call.ns)
		cw_text_append(buf, len, "%s ago ", phrase_since(diag->s->snap, call.ns, &time));
	cw_text_append(buf, len, "with %s", phrase_error(call.result, call.text, &error));
	return true;
}

/*
 * True if other ranks share the process. Then we know facts about the process, but not which of its
 * ranks they concern.
 */
static bool is_one_of_several(const struct cw_snapshot *snap, uint32_t rank)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (i != rank && cw_snap_rank_shares_process(&snap->ranks[i], &snap->ranks[rank]))
			return true;
	return false;
}

static void add_host_activity(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	const char *by = r->host_activity_by ? r->host_activity_by : "";
	struct phrase time;

	if (!r->host_activity_ns)
		return;
	(void)phrase_since(diag->s->snap, r->host_activity_ns, &time);
	if (diag->s->snap->now_ns - r->host_activity_ns < JUST_NOW_NS)
		(void)snprintf(time.text, sizeof(time.text), "less than 1 s");
	cw_text_append(buf, len, is_one_of_several(diag->s->snap, rank) ? "; its process " : "; ");
	if (strcmp(by, "cpu") == 0)
		cw_text_append(buf, len, "last used CPU %s ago", time.text);
	else if (strcmp(by, "io") == 0)
		cw_text_append(buf, len, "last did I/O %s ago", time.text);
	else if (strcmp(by, "child") == 0)
		cw_text_append(buf, len, "last had a child that worked %s ago", time.text);
	else if (strcmp(by, "nccl") == 0)
		cw_text_append(buf, len, "last called NCCL %s ago", time.text);
	else if (*by)
		cw_text_append(buf, len, "last worked %s ago", time.text);
	else /* we count from the first sample: when it last worked is not known */
		cw_text_append(buf, len, "has not worked for %s", time.text);
}

/* The kind of wait decides whether a person is paged, so the sentence names it. */
static void add_host_wait(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	static const char *const waits[CW_HOST_WAIT__MAX] = {
		[CW_HOST_WAIT_LOCK] = "another of its threads, and none of them runs",
		[CW_HOST_WAIT_GIL] = "Python's interpreter lock",
		[CW_HOST_WAIT_QUEUE] = "a pipe, a condition or a timer",
		[CW_HOST_WAIT_SOCKET] = "a socket",
		[CW_HOST_WAIT_TTY] = "somebody to type",
		[CW_HOST_WAIT_STORAGE] = "storage, and no byte moves",
	};
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];

	if (r->liveness == CW_LIVE_ALIVE && r->host_wait < CW_HOST_WAIT__MAX &&
	    waits[r->host_wait] && diag->s->snap->now_ns - r->host_activity_ns >= JUST_NOW_NS)
		cw_text_append(buf, len, "; it waits for %s", waits[r->host_wait]);
}

const char *reason_of_death(const struct cw_snap_rank *r, char *buf, size_t len)
{
	const char *signal = cw_signal_name(r->term_signal);

	buf[0] = '\0';
	if (r->cause)
		(void)snprintf(buf, len, "%s", r->cause); /* the rest is not needed */
	else if (r->flags & CW_RANKF_OOM_KILLED)
		(void)snprintf(buf, len, "OOM-killed");
	else if (r->liveness == CW_LIVE_KILLED && signal)
		(void)snprintf(buf, len, "killed by SIG%s", signal);
	else if (r->liveness == CW_LIVE_KILLED)
		(void)snprintf(buf, len, "killed by signal %" PRId32, r->term_signal);
	else if (r->liveness == CW_LIVE_EXITED)
		(void)snprintf(buf, len, "exited with status %" PRId32, r->exit_code);
	return buf;
}

static void format_death(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	bool needs_comma =
		r->cause || (r->liveness == CW_LIVE_EXITED && !(r->flags & CW_RANKF_OOM_KILLED));
	char how[CAUSE_BYTES + 2];
	struct phrase time;

	if (!*reason_of_death(r, how, CAUSE_BYTES + 1))
		(void)snprintf(how, sizeof(how), "its process has ended");
	else if (needs_comma)
		strcat(how, ","); /* there is room for one more */
	if (r->ended_ns)
		cw_text_append(buf, len, "%s %s ago", how,
			       phrase_since(diag->s->snap, r->ended_ns, &time));
	else
		cw_text_append(buf, len, "%s", how);
	if (diag->v->has_failed_call) {
		cw_text_append(buf, len, "; ");
		(void)add_failed_call(diag, rank, "had ", buf, len);
		return;
	}
	add_last_call(diag, rank, buf, len);
}

/* Names the call that the rank is inside of while others wait for it elsewhere. */
static void say_other_call(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct waitgraph *g = &diag->s->g;
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	struct phrase call, comm;

	if (waitgraph_waits(g, rank)) {
		const struct gate *gate = &g->gates[g->waits[g->wait_start[rank]]];

		cw_text_append(buf, len, "inside %s on %s, which waits for no other rank",
			       gate->op ? phrase_call(diag->s->snap, gate->comm, gate->op, &call)
					: "a call",
			       phrase_comm(diag->s->snap, gate->comm, &comm));
	} else {
		cw_text_append(buf, len, "inside %s",
			       phrase_call(diag->s->snap, CW_SNAP_NONE, &r->host_call, &call));
	}
}

const char *reason_of_halt(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	const char *what = "";

	switch (cw_rank_held_by(r)) {
	case CW_DETAIL_STOPPED:
		what = "stopped by a signal";
		break;
	case CW_DETAIL_TRACED:
		what = "held by a debugger";
		break;
	case CW_DETAIL_FROZEN:
		what = "frozen with its control group";
		break;
	default:
		break;
	}
	/* The rank's node knows the sender of the signal, the debugger or the cgroup. */
	(void)snprintf(buf, len, "%.*s", CAUSE_BYTES,
		       *what && r->cause && *r->cause ? r->cause : what);
	return buf;
}

const char *reason_of_place(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[rank];
	const struct cw_snap_member *m = member_at(diag, rank);
	const struct cw_op *inside = m && m->pending ? m->pending : &r->host_call;
	const struct waitgraph *g = &diag->s->g;
	struct phrase call, comm;

	buf[0] = '\0';
	if (r->liveness == CW_LIVE_STOPPED)
		(void)snprintf(buf, len, "%.*s", CAUSE_BYTES,
			       r->cause ? r->cause : "stopped by a signal");
	else if (r->liveness == CW_LIVE_TRACED)
		(void)snprintf(buf, len, "held by a debugger");
	else if (r->liveness == CW_LIVE_ALIVE && waitgraph_waits(g, rank) &&
		 g->gates[g->waits[g->wait_start[rank]]].op) {
		const struct gate *gate = &g->gates[g->waits[g->wait_start[rank]]];

		cw_text_append(buf, len, "inside %s on %s",
			       phrase_call(diag->s->snap, gate->comm, gate->op, &call),
			       phrase_comm(diag->s->snap, gate->comm, &comm));
	} else if (r->liveness == CW_LIVE_ALIVE && inside->kind != CW_OP_NONE)
		(void)snprintf(buf, len, "inside %s", phrase_kind(inside->kind));
	else if (r->liveness == CW_LIVE_ALIVE)
		(void)snprintf(buf, len, "outside NCCL");
	return buf;
}

static void say_failed(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	char place[CAUSE_BYTES + 1];

	(void)add_failed_call(diag, rank, "", buf, len);
	if (*reason_of_place(diag, rank, place, sizeof(place)))
		cw_text_append(buf, len, "; alive, %s", place);
	add_host_activity(diag, rank, buf, len);
	add_host_wait(diag, rank, buf, len);
}

static void say_alive(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	enum cw_detail detail = diag->v->detail;
	char halt[CAUSE_BYTES + 1];
	/* Recordings do not show whether a process is alive. */
	const char *alive = diag->s->snap->ranks[rank].liveness == CW_LIVE_UNKNOWN ? "" : "alive, ";

	if (*reason_of_halt(diag, rank, halt, sizeof(halt)))
		cw_text_append(buf, len, "%s", halt);
	else if (detail == CW_DETAIL_INSIDE_OTHER_CALL)
		say_other_call(diag, rank, buf, len);
	else if (detail == CW_DETAIL_ABORTED || detail == CW_DETAIL_DESTROYED)
		cw_text_append(buf, len, "%sit has %s the communicator", *alive ? "alive; " : "",
			       cw_detail_name(detail));
	else
		cw_text_append(buf, len, "%soutside NCCL", alive);
	if (diag->s->snap->ranks[rank].flags & CW_RANKF_D_STATE)
		cw_text_append(buf, len, ", in uninterruptible sleep (state D)");
	add_last_call(diag, rank, buf, len);
	add_host_activity(diag, rank, buf, len);
	if (detail == CW_DETAIL_OUTSIDE_NCCL)
		add_host_wait(diag, rank, buf, len);
}

/*
 * Returns the size that the comm would have if its parent had been split evenly, if the comm is
 * larger. Returns 0 if it is not larger, has no parent, or if some group of that split is unknown.
 * NCCL accepts any colour. A rank that gives a wrong one joins another group than its program
 * believes, and both groups then have unexpected sizes. Uneven splits are legal, so this proves
 * nothing. Together with calls that differ it shows where to look.
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
 * The group exceeds an even split by as many members as make other calls in it. These members may
 * have passed a wrong colour.
 */
static void add_colour(const struct diagnosis *diag, char *buf, size_t len)
{
	const struct cw_snapshot *snap = diag->s->snap;
	uint32_t even, nranks = snap->comms[diag->v->comm].nranks;

	if (diag->v->n_culprits > COLOURS_MAX)
		return;
	even = evenly_split_size(snap, diag->v->comm);
	if (even && nranks - even == diag->v->n_culprits)
		cw_text_append(
			buf, len,
			"; the group has %u members, an even split of its parent would give it "
			"%u: check the colour it passed to the split",
			nranks, even);
}

static void say_own_call(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_verdict *v = diag->v;
	char op[96];

	if (diag->main->setup) {
		phrase_trait(diag->s->snap, v->comm, rank, v->detail, buf, len);
		return;
	}
	if (!diag->s->alignments[diag->main->comm].knows_call) {
		cw_text_append(buf, len, "its calls differ from those of the others at #%" PRIu64,
			       v->coll_seq);
		if (v->after_seq)
			cw_text_append(buf, len, " and were the same until #%" PRIu64,
				       v->after_seq);
		return;
	}
	for (uint32_t i = 0; i < v->n_sides; i++)
		for (uint32_t k = 0; v->sides[i].has_op && k < v->sides[i].n_ranks; k++)
			if (v->sides[i].ranks[k] == rank) {
				cw_text_append(buf, len, "called %s",
					       cw_op_format(&v->sides[i].op, op, sizeof(op)));
				add_colour(diag, buf, len);
				return;
			}
}

static void say_pending(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_member *m = member_at(diag, rank);
	char op[96];

	if (m && m->pending)
		cw_text_append(buf, len, "%sinside %s", is_dead(diag, rank) ? "was " : "",
			       cw_op_format(m->pending, op, sizeof(op)));
	else
		cw_text_append(buf, len, "has posted a call of another size");
}

static void say_wait(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct waitgraph *g = &diag->s->g;
	const struct gate *gate;
	struct phrase call, comm;

	if (!waitgraph_waits(g, rank))
		return;
	gate = &g->gates[g->waits[g->wait_start[rank]]];
	cw_text_append(buf, len, "waits in %s on %s while the others wait for it elsewhere",
		       gate->op ? phrase_call(diag->s->snap, gate->comm, gate->op, &call)
				: "a call",
		       phrase_comm(diag->s->snap, gate->comm, &comm));
}

/*
 * We know only that the rank did not finish. It may also wait for data of another rank that did
 * not finish.
 */
static void say_unfinished(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct cw_snap_member *m = member_at(diag, rank);
	struct phrase call;

	cw_text_append(buf, len, "did not finish %s, which others have completed",
		       m && m->pending
			       ? phrase_call(diag->s->snap, diag->v->comm, m->pending, &call)
			       : "the call");
	add_host_activity(diag, rank, buf, len);
}

/* Sizes that differ do not show which of the two ranks is wrong. */
static void say_messages(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len)
{
	const struct message_fault *f = diag->main->messages;
	const struct cw_snap_comm *c = &diag->s->snap->comms[diag->main->comm];
	bool is_sender = c->members[f->sender].rank == rank;
	bool is_of_pair = is_sender || c->members[f->receiver].rank == rank;

	if (f->detail == CW_DETAIL_NOT_POSTED)
		cw_text_append(buf, len, "left out %s that others posted the counterpart of",
			       !is_of_pair ? "calls"
			       : is_sender ? "sends"
					   : "receives");
	else if (f->send && is_of_pair)
		cw_text_append(buf, len, "%s %" PRIu64 " bytes as message #%" PRIu64,
			       is_sender ? "sent" : "received",
			       is_sender ? f->send->bytes : f->recv->bytes, f->send->p2p_seq);
	else
		cw_text_append(buf, len, "sends or receives messages of other sizes than its peer");
}

void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c)
{
	const struct cw_snap_rank *r = &diag->s->snap->ranks[c->rank];
	const char *node =
		r->node < diag->s->snap->n_nodes ? diag->s->snap->nodes[r->node].name : "";
	char *buf = c->reason;
	size_t len = sizeof(c->reason);

	switch (diag->v->verdict_class) {
	case CW_CLASS_PROCESS_DEAD:
		format_death(diag, c->rank, buf, len);
		break;
	case CW_CLASS_NODE_UNREACHABLE:
		cw_text_append(buf, len, "its node %.64s has stopped reporting", node ? node : "");
		break;
	case CW_CLASS_MISMATCH:
		say_own_call(diag, c->rank, buf, len);
		break;
	case CW_CLASS_P2P_UNMATCHED:
		if (diag->main->messages)
			say_messages(diag, c->rank, buf, len);
		else if (diag->main->is_uneven)
			cw_text_append(buf, len,
				       "its size is at odds with those of the others by what is "
				       "missing or left over");
		else if (diag->main->partner != CW_SNAP_NONE)
			say_pending(diag, c->rank, buf, len);
		else if (diag->v->detail == CW_DETAIL_NOT_POSTED)
			say_wait(diag, c->rank, buf, len);
		else
			say_alive(diag, c->rank, buf, len);
		break;
	case CW_CLASS_UNKNOWN:
		cw_text_append(buf, len, "%s, and others wait in a call of its group",
			       phrase_is_empty_recording(r) ? "left a recording without a call"
							    : "left no recording");
		break;
	case CW_CLASS_DEADLOCK:
		say_wait(diag, c->rank, buf, len);
		break;
	case CW_CLASS_IN_COLLECTIVE:
		if (diag->v->detail == CW_DETAIL_UNFINISHED)
			say_unfinished(diag, c->rank, buf, len);
		else
			say_alive(diag, c->rank, buf, len);
		break;
	case CW_CLASS_DEVICE_STALLED:
		cw_text_append(buf, len,
			       "enqueued the call, but its stream is stuck in earlier work");
		add_host_activity(diag, c->rank, buf, len);
		break;
	default:
		if (diag->v->detail == CW_DETAIL_FAILED)
			say_failed(diag, c->rank, buf, len);
		else
			say_alive(diag, c->rank, buf, len);
		break;
	}
}
