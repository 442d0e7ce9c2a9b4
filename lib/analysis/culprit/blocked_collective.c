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

static enum cw_detail held_by(const struct engine_context *s, uint32_t rank)
{
	return rank == CW_SNAP_NONE ? CW_DETAIL_NONE : cw_rank_held_by(&s->snap->ranks[rank]);
}

/*
 * The held rank (by a signal, a debugger or a freezer) among those inside, else among those whose
 * devices are done: its proxy thread moves no data, and what a device hands to it may not have left
 * the node (src/proxy.cc of NCCL; seen over sockets on 2.29.7: two of four ranks had completed, one
 * of them stopped).
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
 * What a member has completed for which all are needed, the devices of all had got to: those of
 * whom it is known that they have not completed it are inside, whether or not that was seen.
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

/* Of a send or receive: the later of the two halves, or what is known of its peer's device. */
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
 * Everybody is inside, or was. Until the last one came, what was waited for was that one; and while
 * members get out one by one, the call moves. The wait of those that are inside is counted from
 * there: a rank that was late for an hour does not make a transfer of two seconds a hang.
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

static void classify_full_collective(const struct engine_context *s, const struct gate *gate,
				     struct finding *f)
{
	uint32_t only = gate->n_waiters == 1 ? gate->waiters[0] : CW_SNAP_NONE;

	if ((gate->n_soft && !is_seen_unfinished(s, gate)) ||
	    (gate->n_unobserved && gate->kind != GATE_P2P)) {
		/* Who says that all of them got there? Nobody: the class needs progress words. */
		f->verdict_class = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_PROGRESS_UNKNOWN;
	} else if (engine_context_n_completed(s, gate)) {
		/* They did not finish; whether one of them is why, is another question. */
		f->verdict_class = CW_CLASS_IN_COLLECTIVE;
		f->detail = CW_DETAIL_UNFINISHED;
		f->since_ns = moved_ns(s, gate);
		f->rank = held_member(s, gate);
		if (f->rank != CW_SNAP_NONE)
			f->detail = held_by(s, f->rank);
	} else if (only != CW_SNAP_NONE && waitgraph_is_missing(&s->g, only)) {
		/* It waits for nobody in there, and others wait for it elsewhere. */
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

/*
 * Both halves are there and are not of one size: that stays so however long they wait. Of a group,
 * any of its sends and receives may be the one. *at is 0 at first; false when there is no further
 * one.
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

/* Those that are in all of the pairs seen so far. */
struct parties {
	uint32_t first[2]; /* the first pair */
	bool is_common[2];
	bool has_more; /* another pair than that */
};

static void note_pair(struct parties *p, uint32_t a, uint32_t b)
{
	bool is_first = p->first[0] == CW_SNAP_NONE;

	if (is_first)
		*p = (struct parties){ .first = { a, b }, .is_common = { true, true } };
	for (unsigned i = 0; i < 2; i++) {
		if (p->first[i] != a && p->first[i] != b) {
			p->is_common[i] = false;
			p->has_more = true;
		}
	}
}

uint32_t blocked_collective_common_party(const struct engine_context *s, uint32_t comm)
{
	struct parties p = { .first = { CW_SNAP_NONE, CW_SNAP_NONE } };
	uint32_t partner;

	for (uint32_t g = 0; g < s->g.n_gates; g++) {
		const struct gate *gate = &s->g.gates[g];

		if (gate->kind != GATE_P2P || gate->comm != comm)
			continue;
		for (uint32_t at = 0; next_difference(s, gate, &at, &partner);)
			note_pair(&p, gate->oldest, partner);
	}
	if (!p.has_more || p.is_common[0] == p.is_common[1])
		return CW_SNAP_NONE;
	return p.first[p.is_common[0] ? 0 : 1];
}

void blocked_collective_classify(const struct engine_context *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	bool collective = gate->kind == GATE_COLLECTIVE || gate->kind == GATE_ROOT;

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
	} else {
		classify_full_collective(s, gate, f);
	}
}

static bool is_unexplained(const struct finding *f)
{
	return f->rank == CW_SNAP_NONE &&
	       (f->verdict_class == CW_CLASS_IN_COLLECTIVE ||
		f->verdict_class == CW_CLASS_INIT_STUCK ||
		(f->verdict_class == CW_CLASS_UNKNOWN && f->detail == CW_DETAIL_PROGRESS_UNKNOWN));
}

int blocked_collective_compare_setup(struct engine_context *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	bool is_first = gate->kind == GATE_INIT || gate->seq == 1;
	struct alignment *al;

	if (!is_unexplained(f) || (gate->kind != GATE_INIT && gate->kind != GATE_COLLECTIVE))
		return 0;
	al = cw_arena_new(&s->arena, struct alignment);
	if (!al || comm_setup_compare(s->snap, gate->comm, gate->seq, gate->op, &s->arena, al) < 0)
		return -ENOMEM;
	/* Sizes that differ hang the making of a comm, and cannot get past it. */
	if (!al->detail || (al->is_proof && gate->kind != GATE_INIT))
		return 0;
	al->seq = f->seq;
	f->setup = al;
	/* It has worked so far with the same versions and variables, but not with this order. */
	if (is_first || al->detail == CW_DETAIL_ORDER) {
		f->verdict_class = CW_CLASS_MISMATCH;
		f->detail = al->detail;
		f->is_proof = al->is_proof;
	}
	return 0;
}
