/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/blocked_collective.h"

#include <errno.h>

#include "analysis/culprit/comm_setup.h"

enum cw_detail blocked_collective_host_detail(uint32_t op_kind)
{
	switch (op_kind) {
	case CW_OP_COMM_INIT:
		return CW_DETAIL_INIT;
	case CW_OP_COMM_SPLIT:
		return CW_DETAIL_SPLIT;
	case CW_OP_COMM_SHRINK:
		return CW_DETAIL_SHRINK;
	case CW_OP_COMM_GROW:
		return CW_DETAIL_GROW;
	case CW_OP_COMM_FINALIZE:
	case CW_OP_COMM_DESTROY:
		return CW_DETAIL_FINALIZE;
	default:
		return CW_DETAIL_HOST_CALL;
	}
}

/*
 * Returns how the rank is held: by a signal, a debugger or a freezer. CW_DETAIL_NONE = it is not
 * held.
 */
static enum cw_detail held_by(const struct engine_context *s, uint32_t rank)
{
	return rank == CW_SNAP_NONE ? CW_DETAIL_NONE : cw_rank_held_by(&s->snap->ranks[rank]);
}

/*
 * Returns a member of the gate's comm that a signal, a debugger or a freezer holds; CW_SNAP_NONE =
 * none.
 *
 * We prefer the ranks inside the call. But a held rank whose device is done may also keep the
 * others inside. Its proxy thread moves no data, and data that the device handed to the proxy may
 * still be on the node (src/proxy.cc of NCCL). We saw this over sockets on 2.29.7: two of four
 * ranks had completed, and one of these two was stopped.
 */
static uint32_t held_member(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];

	for (uint32_t i = 0; i < gate->n_waiters; i++)
		if (held_by(s, gate->waiters[i]))
			return gate->waiters[i];
	if (gate->kind == GATE_P2P) {
		bool has_peer =
			gate->op && gate->op->peer >= 0 && (uint32_t)gate->op->peer < c->nranks;

		return has_peer && held_by(s, c->members[gate->op->peer].rank)
			       ? c->members[gate->op->peer].rank
			       : CW_SNAP_NONE;
	}
	for (uint32_t m = 0; m < c->nranks; m++)
		if (held_by(s, c->members[m].rank))
			return c->members[m].rank;
	return CW_SNAP_NONE;
}

/*
 * True if the waiters are certainly inside the call, although we do not see their devices. If one
 * member has completed a call that needs all members, all devices had reached it. A waiter that has
 * certainly not completed the call is then inside.
 */
static bool is_seen_unfinished(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];

	if (gate->kind != GATE_COLLECTIVE || !engine_context_n_completed(s, gate))
		return false;
	for (uint32_t i = 0; i < gate->n_waiters; i++) {
		uint32_t m = engine_context_comm_rank(s, gate->comm, gate->waiters[i]);

		if (m == CW_SNAP_NONE || !(c->members[m].known & CW_KNOWN_COMPLETED))
			return false;
	}
	return true;
}

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * Returns the time at which a message last moved: its later half began, or the peer's device made
 * progress. 0 = not known.
 */
static int64_t pair_moved_ns(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	uint32_t me = engine_context_comm_rank(s, gate->comm, gate->oldest), peer;
	const struct cw_op *other;

	if (me == CW_SNAP_NONE || !gate->op)
		return 0;
	other = waitgraph_counterpart(c, me, gate->op, &peer);
	if (other)
		return other->enter_ns;
	if (gate->op->peer < 0 || (uint32_t)gate->op->peer >= c->nranks)
		return 0;
	return c->members[gate->op->peer].n_window ? 0 : c->members[gate->op->peer].progress_ns;
}

/*
 * Returns the time from which we count the wait of the ranks inside: the time at which the call
 * last moved. Until the last member came, the others waited for that member. While members leave
 * one by one, the call moves. Without this, a rank that was late for an hour would turn a transfer
 * of two seconds into a hang.
 */
static int64_t moved_ns(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	int64_t last = gate->since_ns;

	if (gate->kind == GATE_P2P)
		return max_ns(last, pair_moved_ns(s, gate));
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank != CW_SNAP_NONE)
			last = max_ns(last, c->members[m].progress_ns);
	return last;
}

/* Describes a collective or message that all ranks have entered and that does not end. */
static void classify_full_collective(const struct engine_context *s, const struct gate *gate,
				     struct finding *f)
{
	uint32_t only = gate->n_waiters == 1 ? gate->waiters[0] : CW_SNAP_NONE;

	if ((gate->n_soft && !is_seen_unfinished(s, gate)) ||
	    (gate->n_unobserved && gate->kind != GATE_P2P)) {
		/*
		 * Without progress words we cannot say that the devices of all ranks reached the
		 * call.
		 */
		f->verdict_class = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_PROGRESS_UNKNOWN;
	} else if (engine_context_n_completed(s, gate)) {
		/*
		 * The ranks inside did not finish, but the cause may be a rank that has completed
		 * the call.
		 */
		f->verdict_class = CW_CLASS_IN_COLLECTIVE;
		f->detail = CW_DETAIL_UNFINISHED;
		f->since_ns = moved_ns(s, gate);
		f->rank = held_member(s, gate);
		if (f->rank != CW_SNAP_NONE)
			f->detail = held_by(s, f->rank);
	} else if (only != CW_SNAP_NONE && waitgraph_is_missing(&s->g, only)) {
		/*
		 * Only one rank is inside, and it waits for no rank here. Other ranks wait for it
		 * elsewhere.
		 */
		f->verdict_class = CW_CLASS_NEVER_ENTERED;
		f->detail = held_by(s, only) ? held_by(s, only) : CW_DETAIL_INSIDE_OTHER_CALL;
		f->rank = only;
		f->gate = engine_context_gate_of(s, only);
		f->comm = s->g.gates[f->gate].comm;
		f->seq = s->g.gates[f->gate].seq;
		f->since_ns = s->g.gates[f->gate].since_ns;
	} else {
		f->verdict_class = CW_CLASS_IN_COLLECTIVE;
		f->since_ns = moved_ns(s, gate);
		f->rank = held_member(s, gate);
		f->detail = held_by(s, f->rank);
	}
}

/* True if both halves of the message are known and differ in size. */
static bool size_differs(const struct cw_snap_comm *c, uint32_t me, const struct cw_op *op,
			 uint32_t *ret_partner)
{
	uint32_t peer;
	const struct cw_op *other = waitgraph_counterpart(c, me, op, &peer);

	if (!other || other->bytes == op->bytes)
		return false;
	*ret_partner = c->members[peer].rank;
	return true;
}

/* True if we know the rank from a recording only. Recordings do not show whether a process lives.
 */
static bool is_recorded(const struct engine_context *s, uint32_t rank)
{
	return s->snap->ranks[rank].liveness == CW_LIVE_UNKNOWN;
}

/*
 * Finds the only peer of the messages that the gate's oldest waiter waits for. Recordings show no
 * network, so the fault is at one of the two. *ret_is_done: the peer's half has completed, so the
 * waiter is the stuck one. Returns false if the messages have several peers, or if the peer's half
 * is unknown or waits behind another call.
 */
static bool find_partner(const struct engine_context *s, const struct gate *gate,
			 uint32_t *ret_partner, bool *ret_is_done)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	uint32_t me = engine_context_comm_rank(s, gate->comm, gate->oldest);
	uint32_t only = CW_SNAP_NONE, peer = CW_SNAP_NONE;
	bool is_done = true;

	if (!is_recorded(s, gate->oldest) || me == CW_SNAP_NONE || !gate->op)
		return false;
	for (uint32_t i = 0; i < c->members[me].n_window; i++) {
		const struct cw_op *op = &c->members[me].window[i], *other;

		if (!cw_op_is_p2p(op->kind) || op->progress == CW_PROGRESS_COMPLETED ||
		    !waitgraph_same_launch(op, gate->op))
			continue;
		other = waitgraph_counterpart(c, me, op, &peer);
		if (!other || (only != CW_SNAP_NONE && only != peer) ||
		    (other->progress == CW_PROGRESS_ENQUEUED && other->flags & CW_OPF_RETURNED))
			return false;
		only = peer;
		is_done = is_done && other->progress == CW_PROGRESS_COMPLETED;
	}
	if (only == CW_SNAP_NONE)
		return false;
	*ret_partner = c->members[only].rank;
	*ret_is_done = is_done;
	return true;
}

/*
 * Finds the next message of the gate's oldest waiter whose halves differ in size. Any send or
 * receive of a group may be such a message. The result of the comparison does not change while we
 * wait. *at is 0 before the first call. Returns false if there is no further message.
 */
static bool next_difference(const struct engine_context *s, const struct gate *gate, uint32_t *at,
			    uint32_t *ret_partner)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	uint32_t me = engine_context_comm_rank(s, gate->comm, gate->oldest);
	const struct cw_op *op;

	if (me == CW_SNAP_NONE || !gate->op)
		return false;
	if (!(*at)++ && size_differs(c, me, gate->op, ret_partner))
		return true;
	while (*at <= c->members[me].n_window) {
		op = &c->members[me].window[(*at)++ - 1];
		if (cw_op_is_p2p(op->kind) && op->progress != CW_PROGRESS_COMPLETED &&
		    waitgraph_same_launch(op, gate->op) && size_differs(c, me, op, ret_partner))
			return true;
	}
	return false;
}

uint32_t blocked_collective_common_party(const struct engine_context *s, uint32_t comm)
{
	uint32_t first[2] = { CW_SNAP_NONE, CW_SNAP_NONE }, partner; /* the first pair */
	bool is_common[2] = { true, true }; /* the rank of `first` is in all pairs so far */
	bool has_more = false;              /* there is a second pair */

	for (uint32_t g = 0; g < s->g.n_gates; g++) {
		const struct gate *gate = &s->g.gates[g];

		if (gate->kind != GATE_P2P || gate->comm != comm)
			continue;
		for (uint32_t at = 0; next_difference(s, gate, &at, &partner);) {
			if (first[0] == CW_SNAP_NONE) {
				first[0] = gate->oldest;
				first[1] = partner;
			}
			for (unsigned i = 0; i < 2; i++)
				if (first[i] != gate->oldest && first[i] != partner) {
					is_common[i] = false;
					has_more = true;
				}
		}
	}
	if (!has_more || is_common[0] == is_common[1])
		return CW_SNAP_NONE;
	return first[is_common[0] ? 0 : 1];
}

void blocked_collective_classify(const struct engine_context *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	bool collective = gate->kind == GATE_COLLECTIVE || gate->kind == GATE_ROOT;
	bool is_done;

	*f = (struct finding){ .node = waitgraph_gate_node(&s->g, g),
			       .rank = CW_SNAP_NONE,
			       .partner = CW_SNAP_NONE,
			       .gate = g,
			       .comm = gate->comm,
			       .seq = collective ? gate->seq : 0,
			       .since_ns = gate->since_ns };
	if (gate->kind == GATE_HOST || gate->kind == GATE_INIT) {
		f->verdict_class =
			gate->op_kind == CW_OP_GROUP_END ? CW_CLASS_UNKNOWN : CW_CLASS_INIT_STUCK;
		f->detail = blocked_collective_host_detail(gate->op_kind);
		if (f->verdict_class == CW_CLASS_INIT_STUCK &&
		    held_member(s, gate) != CW_SNAP_NONE) {
			f->rank = held_member(s, gate);
			f->detail = held_by(s, f->rank);
		}
	} else if (gate->n_unseen) {
		f->verdict_class = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_NOT_VISIBLE;
	} else if (gate->kind == GATE_P2P &&
		   next_difference(s, gate, &(uint32_t){ 0 }, &f->partner)) {
		f->verdict_class = CW_CLASS_P2P_UNMATCHED;
		f->detail = CW_DETAIL_SIZE;
		f->is_proof = true;
		f->rank = gate->oldest;
	} else if (collective && gate->seq && gate->seq == c->uneven_seq) {
		f->verdict_class = CW_CLASS_P2P_UNMATCHED;
		f->detail = CW_DETAIL_SIZE;
		f->is_uneven = true;
		if (c->uneven_member >= 0 && (uint32_t)c->uneven_member < c->nranks)
			f->rank = c->members[c->uneven_member].rank;
	} else if (gate->kind == GATE_P2P && find_partner(s, gate, &f->partner, &is_done)) {
		f->verdict_class = CW_CLASS_IN_COLLECTIVE;
		f->detail = is_done ? CW_DETAIL_UNFINISHED : CW_DETAIL_PAIR;
		f->rank = gate->oldest;
		f->since_ns = moved_ns(s, gate);
	} else {
		classify_full_collective(s, gate, f);
	}
}

int blocked_collective_compare_setup(struct engine_context *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	bool is_first = gate->kind == GATE_INIT || gate->seq == 1;
	struct alignment *al;
	bool is_unexplained =
		f->rank == CW_SNAP_NONE &&
		(f->verdict_class == CW_CLASS_IN_COLLECTIVE ||
		 f->verdict_class == CW_CLASS_INIT_STUCK ||
		 (f->verdict_class == CW_CLASS_UNKNOWN && f->detail == CW_DETAIL_PROGRESS_UNKNOWN));

	if (!is_unexplained || (gate->kind != GATE_INIT && gate->kind != GATE_COLLECTIVE))
		return 0;
	al = cw_arena_new(&s->arena, struct alignment);
	if (!al || comm_setup_compare(s->snap, gate->comm, gate->seq, gate->op, &s->arena, al) < 0)
		return -ENOMEM;
	/*
	 * Different sizes of a comm hang its initialisation. So a later call cannot have this
	 * fault.
	 */
	if (!al->detail || (al->is_proof && gate->kind != GATE_INIT))
		return 0;
	al->seq = f->seq;
	f->setup = al;
	/*
	 * Versions and variables have worked in the earlier calls, but this order of launches is
	 * new.
	 */
	if (is_first || al->detail == CW_DETAIL_ORDER) {
		f->verdict_class = CW_CLASS_MISMATCH;
		f->detail = al->detail;
		f->is_proof = al->is_proof;
	}
	return 0;
}

/* Notes the comms whose connections are known. There are none in most jobs. */
static int find_connections(struct engine_context *s)
{
	const struct cw_snapshot *snap = s->snap;

	s->has_connections = cw_arena_new_array(&s->arena, bool, snap->n_comms);
	s->of_messages =
		cw_arena_new_array(&s->arena, struct connection_judgement *, snap->n_comms);
	if (!s->has_connections || !s->of_messages)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks && !s->has_connections[c]; m++)
			s->has_connections[c] = snap->comms[c].members[m].n_connections > 0;
	return 0;
}

/* Judges the gate's call. All messages of a comm have one judgement. */
static int judge(struct engine_context *s, const struct gate *gate, uint64_t seq,
		 const struct connection_judgement **ret)
{
	struct connection_judgement *found = seq ? NULL : s->of_messages[gate->comm];
	int r = 0;

	if (!found) {
		found = cw_arena_new(&s->arena, struct connection_judgement);
		r = found ? connection_judge(s->snap, gate->comm, seq, gate->op_kind, &s->arena,
					     found)
			  : -ENOMEM;
	}
	if (r == 0 && !seq)
		s->of_messages[gate->comm] = found;
	*ret = found;
	return r;
}

/* True if the connection joins the two ranks of the gate's message. */
static bool is_of_message(const struct engine_context *s, const struct gate *gate,
			  const struct cw_link *link)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	uint32_t peer = gate->op && gate->op->peer >= 0 && (uint32_t)gate->op->peer < c->nranks
				? c->members[gate->op->peer].rank
				: CW_SNAP_NONE;

	return link->is_set && peer != CW_SNAP_NONE &&
	       ((link->sender == gate->oldest && link->receiver == peer) ||
		(link->receiver == gate->oldest && link->sender == peer));
}

int blocked_collective_judge_connections(struct engine_context *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	bool is_inside = f->verdict_class == CW_CLASS_IN_COLLECTIVE;
	bool is_unknown =
		f->verdict_class == CW_CLASS_UNKNOWN && f->detail == CW_DETAIL_PROGRESS_UNKNOWN;
	const struct connection_judgement *found;

	if (!s->has_connections && find_connections(s) < 0)
		return -ENOMEM;
	if ((!is_inside && !is_unknown) || f->rank != CW_SNAP_NONE ||
	    !s->has_connections[gate->comm])
		return 0;
	if (judge(s, gate, gate->kind == GATE_P2P ? 0 : f->seq, &found) < 0)
		return -ENOMEM;
	if (found->detail == CW_DETAIL_NONE ||
	    (gate->kind == GATE_P2P && !is_of_message(s, gate, &found->link)))
		return 0;
	f->connections = found;
	f->detail = found->detail;
	/* An open part in NCCL's proxy shows that the ranks are inside the call. */
	if (is_unknown) {
		f->verdict_class = CW_CLASS_IN_COLLECTIVE;
		f->since_ns = moved_ns(s, gate);
	}
	return 0;
}
