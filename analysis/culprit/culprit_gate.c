/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of the waiting that are no rank: gates that stay shut with everybody inside, and cycles. */
#include <errno.h>
#include <string.h>

#include "analysis/culprit/comm_setup.h"
#include "analysis/culprit/culprit_private.h"

/* Uncertainty of times that come from different hosts. */
#define CLOCK_SLACK_NS (INT64_C(500) * 1000000)

enum cw_detail culprit_host_detail(uint32_t op_kind)
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

/* ---- a gate that stays shut although nobody visible is missing ---- */

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
	} else if (only != CW_SNAP_NONE && waitgraph_is_missing(&s->g, only)) {
		/* It waits for nobody in there, and others wait for it elsewhere. */
		f->klass = CW_CLASS_NEVER_ENTERED;
		f->detail = CW_DETAIL_INSIDE_OTHER_CALL;
		f->rank = only;
		f->gate = culprit_gate_of(s, only);
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

void culprit_classify_gate(const struct scene *s, uint32_t g, struct finding *f)
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
		f->detail = culprit_host_detail(gate->op_kind);
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

int culprit_compare_setup(struct scene *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];
	bool is_first = gate->kind == GATE_INIT || gate->seq == 1;
	struct alignment *al;

	if (!is_unexplained(f) || (gate->kind != GATE_INIT && gate->kind != GATE_COLLECTIVE))
		return 0;
	al = arena_new(&s->arena, struct alignment);
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

/* ---- cycles ---- */

/*
 * Snapshots are not taken everywhere at once. A cycle is real if there was an instant at which all
 * its ranks were waiting: each since it last moved, each still when it was looked at.
 */
static bool waited_at_once(const struct scene *s, uint32_t component)
{
	const struct cw_snapshot *snap = s->snap;
	int64_t latest_start = INT64_MIN, earliest_look = INT64_MAX;

	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		const struct gate *gate = &s->g.gates[i];

		if (s->g.component[waitgraph_gate_node(&s->g, i)] != component)
			continue;
		if (gate->n_soft)
			return false;
		for (uint32_t m = 0; m < snap->comms[gate->comm].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[gate->comm].members[m];
			int64_t look;

			if (member->rank >= snap->n_ranks ||
			    s->g.component[member->rank] != component)
				continue;
			look = snap->ranks[member->rank].sampled_ns;
			if (look && look < earliest_look)
				earliest_look = look;
			if (member->progress_ns > latest_start)
				latest_start = member->progress_ns;
			if (member->pending && member->pending->enter_ns > latest_start)
				latest_start = member->pending->enter_ns;
		}
	}
	return earliest_look != INT64_MAX && latest_start + CLOCK_SLACK_NS < earliest_look;
}

static bool is_older(const struct gate *a, const struct gate *b)
{
	return a->since_ns && (!b->since_ns || a->since_ns < b->since_ns);
}

/* Per component, its oldest gate; CW_SNAP_NONE where it has none. */
uint32_t *culprit_oldest_in_cycles(struct scene *s)
{
	const struct waitgraph *g = &s->g;
	uint32_t *oldest = arena_new_array(&s->arena, uint32_t, g->n_components);

	if (!oldest)
		return NULL;
	memset(oldest, 0xff, g->n_components * sizeof(*oldest));
	for (uint32_t i = 0; i < g->n_gates; i++) {
		uint32_t *o = &oldest[g->component[waitgraph_gate_node(g, i)]];

		if (*o == CW_SNAP_NONE || is_older(&g->gates[i], &g->gates[*o]))
			*o = i;
	}
	return oldest;
}

/* Whether all members of the comm but that one have posted as many sends and receives, it fewer. */
static bool has_posted_fewer(const struct cw_snap_comm *c, uint32_t odd)
{
	const struct cw_snap_member *mine = &c->members[odd], *usual = NULL;
	uint32_t n = 0;

	for (uint32_t m = 0; m < c->nranks; m++) {
		const struct cw_snap_member *member = &c->members[m];

		if (member->rank == CW_SNAP_NONE || !(member->known & CW_KNOWN_P2P))
			return false;
		if (m == odd)
			continue;
		if (usual && (usual->sends != member->sends || usual->recvs != member->recvs))
			return false;
		usual = member;
		n++;
	}
	return n > 1 && mine->sends + mine->recvs < usual->sends + usual->recvs;
}

/*
 * A rank that leaves out its half of a send or receive goes on to the next collective, and waits
 * there for the very rank that waits for the other half: a cycle, as if the order were wrong. In a
 * comm in which everybody posts the same number, the one that has posted fewer is to blame.
 */
static uint32_t gate_left_out(const struct scene *s, uint32_t component)
{
	uint32_t found = CW_SNAP_NONE, m;

	for (uint32_t i = 0; i < s->g.n_gates; i++) {
		if (s->g.gates[i].kind != GATE_P2P ||
		    s->g.component[waitgraph_gate_node(&s->g, i)] != component)
			continue;
		if (found != CW_SNAP_NONE)
			return CW_SNAP_NONE;
		found = i;
	}
	if (found == CW_SNAP_NONE || s->g.gates[found].n_missing != 1)
		return CW_SNAP_NONE;
	m = scene_comm_rank(s, s->g.gates[found].comm, s->g.gates[found].missing[0]);
	return m != CW_SNAP_NONE && has_posted_fewer(&s->snap->comms[s->g.gates[found].comm], m)
		       ? found
		       : CW_SNAP_NONE;
}

static void classify_left_out(const struct scene *s, uint32_t g, struct finding *f)
{
	const struct gate *gate = &s->g.gates[g];

	f->klass = CW_CLASS_P2P_UNMATCHED;
	f->detail = CW_DETAIL_NOT_POSTED;
	f->node = f->rank = gate->missing[0];
	f->gate = g;
	f->comm = gate->comm;
	f->seq = 0;
	f->since_ns = gate->since_ns;
}

void culprit_classify_cycle(const struct scene *s, uint32_t oldest, struct finding *f)
{
	uint32_t left_out;
	const struct gate *gate = &s->g.gates[oldest];

	*f = (struct finding){ .klass = CW_CLASS_DEADLOCK,
			       .detail = CW_DETAIL_ORDER,
			       .node = waitgraph_gate_node(&s->g, oldest),
			       .rank = CW_SNAP_NONE,
			       .partner = CW_SNAP_NONE,
			       .gate = oldest,
			       .comm = gate->comm,
			       .seq = gate->kind == GATE_P2P ? 0 : gate->seq,
			       .since_ns = gate->since_ns };
	f->is_proof = waited_at_once(s, s->g.component[f->node]);
	left_out = gate_left_out(s, s->g.component[f->node]);
	if (left_out != CW_SNAP_NONE)
		classify_left_out(s, left_out, f);
}
