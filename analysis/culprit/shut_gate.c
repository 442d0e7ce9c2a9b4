/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/shut_gate.h"

#include <errno.h>

#include "analysis/culprit/comm_setup.h"

enum cw_detail shut_gate_host_detail(uint32_t op_kind)
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

/* The one stopped rank among those inside: its proxy thread moves no data. */
static uint32_t stopped_member(const struct scene *s, const struct gate *gate)
{
	for (uint32_t i = 0; i < gate->n_waiters; i++)
		if (s->snap->ranks[gate->waiters[i]].liveness == CW_LIVE_STOPPED)
			return gate->waiters[i];
	return CW_SNAP_NONE;
}

static void classify_full_collective(const struct scene *s, const struct gate *gate,
				     struct finding *f)
{
	uint32_t only = gate->n_waiters == 1 ? gate->waiters[0] : CW_SNAP_NONE;

	if (gate->n_soft || (gate->n_veiled && gate->kind != GATE_P2P)) {
		/* Who says that all of them got there? Nobody: the class needs progress words. */
		f->klass = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_PROGRESS_UNKNOWN;
	} else if (scene_n_completed(s, gate)) {
		/* They did not finish; whether one of them is why, is another question. */
		f->klass = CW_CLASS_IN_COLLECTIVE;
		f->detail = CW_DETAIL_UNFINISHED;
		if (stopped_member(s, gate) != CW_SNAP_NONE) {
			f->rank = stopped_member(s, gate);
			f->detail = CW_DETAIL_STOPPED;
		}
	} else if (only != CW_SNAP_NONE && waitgraph_is_missing(&s->g, only)) {
		/* It waits for nobody in there, and others wait for it elsewhere. */
		f->klass = CW_CLASS_NEVER_ENTERED;
		f->detail = CW_DETAIL_INSIDE_OTHER_CALL;
		f->rank = only;
		f->gate = scene_gate_of(s, only);
		f->comm = s->g.gates[f->gate].comm;
		f->seq = s->g.gates[f->gate].seq;
		f->since_ns = s->g.gates[f->gate].since_ns;
	} else {
		f->klass = CW_CLASS_IN_COLLECTIVE;
		f->rank = stopped_member(s, gate);
		if (f->rank != CW_SNAP_NONE)
			f->detail = CW_DETAIL_STOPPED;
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
 * any of its sends and receives may be the one.
 */
static bool sizes_differ(const struct scene *s, const struct gate *gate, uint32_t *ret_partner)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	uint32_t me = scene_comm_rank(s, gate->comm, gate->oldest);

	if (me == CW_SNAP_NONE || !gate->op)
		return false;
	if (size_differs(c, me, gate->op, ret_partner))
		return true;
	for (uint32_t i = 0; i < c->members[me].n_window; i++) {
		const struct cw_op *op = &c->members[me].window[i];

		if (cw_op_is_p2p(op->kind) && op->progress != CW_PROGRESS_COMPLETED &&
		    waitgraph_same_launch(op, gate->op) && size_differs(c, me, op, ret_partner))
			return true;
	}
	return false;
}

void shut_gate_classify(const struct scene *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	bool collective = gate->kind == GATE_COLLECTIVE || gate->kind == GATE_ROOT;

	*f = (struct finding){ .node = waitgraph_gate_node(&s->g, g),
			       .rank = CW_SNAP_NONE,
			       .partner = CW_SNAP_NONE,
			       .gate = g,
			       .comm = gate->comm,
			       .seq = collective ? gate->seq : 0,
			       .since_ns = gate->since_ns };
	if (gate->kind == GATE_HOST || gate->kind == GATE_INIT) {
		f->klass =
			gate->op_kind == CW_OP_GROUP_END ? CW_CLASS_UNKNOWN : CW_CLASS_INIT_STUCK;
		f->detail = shut_gate_host_detail(gate->op_kind);
	} else if (gate->n_unseen) {
		f->klass = CW_CLASS_UNKNOWN;
		f->detail = CW_DETAIL_NOT_VISIBLE;
	} else if (gate->kind == GATE_P2P && sizes_differ(s, gate, &f->partner)) {
		f->klass = CW_CLASS_P2P_UNMATCHED;
		f->detail = CW_DETAIL_SIZE;
		f->is_proof = true;
		f->rank = gate->oldest;
	} else {
		classify_full_collective(s, gate, f);
	}
}

static bool is_unexplained(const struct finding *f)
{
	return f->rank == CW_SNAP_NONE &&
	       (f->klass == CW_CLASS_IN_COLLECTIVE || f->klass == CW_CLASS_INIT_STUCK ||
		(f->klass == CW_CLASS_UNKNOWN && f->detail == CW_DETAIL_PROGRESS_UNKNOWN));
}

int shut_gate_compare_setup(struct scene *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	bool is_first = gate->kind == GATE_INIT || gate->seq == 1;
	struct alignment *al;

	if (!is_unexplained(f) || (gate->kind != GATE_INIT && gate->kind != GATE_COLLECTIVE))
		return 0;
	al = cw_arena_new(&s->arena, struct alignment);
	if (!al || comm_setup_compare(s->snap, gate->comm, gate->op, &s->arena, al) < 0)
		return -ENOMEM;
	/* Sizes that differ hang the making of a comm, and cannot get past it. */
	if (!al->detail || (al->is_proof && gate->kind != GATE_INIT))
		return 0;
	al->seq = f->seq;
	f->setup = al;
	if (is_first) {
		f->klass = CW_CLASS_MISMATCH;
		f->detail = al->detail;
		f->is_proof = al->is_proof;
	}
	return 0;
}
