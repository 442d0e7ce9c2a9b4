/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/call_order.h"

#include <errno.h>

#include "analysis/align/position.h"

/* A time that means: the member has not made the call. */
#define NOT_YET INT64_MAX

static int64_t time_of(const struct cw_op *op, uint64_t seq)
{
	return op && position_is_step(op) && op->coll_seq == seq ? op->enter_ns : 0;
}

/*
 * Returns the time at which the member made the call `seq`. NOT_YET = it has not made the call. 0 =
 * not known.
 */
static int64_t when_made(const struct cw_snap_member *m, uint64_t seq)
{
	int64_t ns = time_of(m->pending, seq);

	if (!(m->known & CW_KNOWN_ENTERED))
		return 0;
	if (m->coll_entered < seq)
		return NOT_YET;
	for (uint32_t i = m->n_window; !ns && i-- > 0;)
		ns = time_of(&m->window[i], seq);
	return ns ? ns : time_of(m->last, seq);
}

/*
 * For each rank, notes the time at which it made the gate's call, and whether it is a member of the
 * gate's own comm. Ranks of other groups from the same split count too: they made the same call in
 * their own group.
 */
static int note_times(struct engine_context *s, const struct gate *gate, int64_t **ret_ns,
		      bool **ret_own)
{
	const struct cw_snapshot *snap = s->snap;
	int64_t *ns = cw_arena_new_array(&s->arena, int64_t, snap->n_ranks);
	bool *own = cw_arena_new_array(&s->arena, bool, snap->n_ranks);

	if (!ns || !own)
		return -ENOMEM;
	for (uint32_t c = 0; c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c],
					  *own_comm = &snap->comms[gate->comm];
		bool is_sibling = comm->parent_id && comm->parent_id == own_comm->parent_id &&
				  comm->split_ordinal == own_comm->split_ordinal &&
				  comm->instance == own_comm->instance;

		if (comm != own_comm && !is_sibling)
			continue;
		for (uint32_t m = 0; m < comm->nranks; m++) {
			const struct cw_snap_member *member = &comm->members[m];

			if (member->rank >= snap->n_ranks)
				continue;
			ns[member->rank] = when_made(member, gate->seq);
			own[member->rank] = own[member->rank] || c == gate->comm;
		}
	}
	*ret_ns = ns;
	*ret_own = own;
	return 0;
}

int call_order_ask(struct engine_context *s, uint32_t a, uint32_t b, struct call_order_vote *ret)
{
	int64_t *a_ns, *b_ns;
	bool *of_a, *of_b;

	*ret = (struct call_order_vote){
		.of = cw_arena_new_array(&s->arena, enum call_order, s->snap->n_ranks),
		.is_member = cw_arena_new_array(&s->arena, bool, s->snap->n_ranks),
		.is_unseen = cw_arena_new_array(&s->arena, bool, s->snap->n_ranks),
	};
	if (!ret->of || !ret->is_member || !ret->is_unseen ||
	    note_times(s, &s->g.gates[a], &a_ns, &of_a) < 0 ||
	    note_times(s, &s->g.gates[b], &b_ns, &of_b) < 0)
		return -ENOMEM;
	for (uint32_t r = 0; r < s->snap->n_ranks; r++) {
		if (a_ns[r] && b_ns[r] && a_ns[r] != b_ns[r])
			ret->of[r] = a_ns[r] < b_ns[r] ? CALL_ORDER_A : CALL_ORDER_B;
		ret->n[ret->of[r]] += ret->of[r] != CALL_ORDER_UNKNOWN;
		/*
		 * In a cycle over two groups, only members of both groups could choose between two
		 * orders.
		 */
		ret->is_member[r] = of_a[r] || of_b[r];
		ret->is_unseen[r] = of_a[r] && of_b[r] && ret->of[r] == CALL_ORDER_UNKNOWN;
		ret->unseen += ret->is_unseen[r];
	}
	return 0;
}

bool call_order_is_rooted(const struct engine_context *s, uint32_t component)
{
	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (s->g.component[waitgraph_gate_node(&s->g, i)] == component &&
		    cw_op_has_root(s->g.gates[i].op_kind))
			return true;
	return false;
}

/*
 * A send or receive concerns two ranks only, so the waits of the other members tell nothing. With
 * one of these in the cycle, only the ranks of the cycle count.
 */
bool *call_order_electors(struct engine_context *s, uint32_t component)
{
	const struct waitgraph *g = &s->g;
	uint32_t *memberships = cw_arena_new_array(&s->arena, uint32_t, g->n_ranks);
	bool *is_counted = cw_arena_new_array(&s->arena, bool, s->snap->n_comms);
	bool *electors = cw_arena_new_array(&s->arena, bool, g->n_ranks);
	uint32_t n_comms = 0;
	bool has_p2p = false;

	if (!memberships || !is_counted || !electors)
		return NULL;
	for (uint32_t i = 0; i < g->n_gates; i++) {
		const struct cw_snap_comm *c = &s->snap->comms[g->gates[i].comm];

		if (g->component[waitgraph_gate_node(g, i)] != component)
			continue;
		has_p2p = has_p2p || g->gates[i].kind == GATE_P2P;
		if (is_counted[g->gates[i].comm])
			continue;
		is_counted[g->gates[i].comm] = true;
		n_comms++;
		for (uint32_t m = 0; m < c->nranks; m++)
			if (c->members[m].rank < g->n_ranks)
				memberships[c->members[m].rank]++;
	}
	for (uint32_t r = 0; r < g->n_ranks; r++)
		electors[r] =
			g->component[r] == component || (!has_p2p && memberships[r] == n_comms);
	return electors;
}

/* ---- sends and receives in the cycle ---- */

static bool has_counterpart(const struct cw_snap_comm *c, uint32_t me, const struct cw_op *op)
{
	uint32_t peer;

	return !cw_op_is_p2p(op->kind) || op->progress == CW_PROGRESS_COMPLETED ||
	       waitgraph_counterpart(c, me, op, &peer);
}

/*
 * True if each send and receive of the gate's oldest waiter has its counterpart: the receive or
 * send of its peer.
 */
static bool gate_is_posted(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	uint32_t me = engine_context_comm_rank(s, gate->comm, gate->oldest);

	if (me == CW_SNAP_NONE || !gate->op || !has_counterpart(c, me, gate->op))
		return false;
	for (uint32_t i = 0; i < c->members[me].n_window; i++) {
		const struct cw_op *op = &c->members[me].window[i];

		if (waitgraph_same_launch(op, gate->op) && !has_counterpart(c, me, op))
			return false;
	}
	return true;
}

bool call_order_is_posted(const struct engine_context *s, uint32_t component)
{
	for (uint32_t i = 0; i < s->g.n_gates; i++)
		if (s->g.gates[i].kind == GATE_P2P &&
		    s->g.component[waitgraph_gate_node(&s->g, i)] == component &&
		    !gate_is_posted(s, &s->g.gates[i]))
			return false;
	return true;
}

/* ---- pivots: ranks that the whole cycle waits for ---- */

/*
 * We search for pivots only in cycles of at most this many ranks. In larger cycles the search takes
 * too long.
 */
#define MAX_PIVOT_RANKS 64

struct cycle {
	const struct waitgraph *g;
	uint32_t component;
	uint32_t *nodes;
	uint32_t n_nodes;
	bool *is_free; /* per node of the graph */
};

/*
 * True if the whole cycle becomes free once this rank is free. A node becomes free if all nodes of
 * the cycle that it waits for are free.
 */
static bool frees_all(struct cycle *c, uint32_t rank)
{
	uint32_t n_free = 1;
	bool moved = true;

	for (uint32_t i = 0; i < c->n_nodes; i++)
		c->is_free[c->nodes[i]] = c->nodes[i] == rank;
	while (moved) {
		moved = false;
		for (uint32_t i = 0; i < c->n_nodes; i++) {
			uint32_t node = c->nodes[i];

			bool may_go = !c->is_free[node];

			for (uint32_t k = 0; may_go; k++) {
				uint32_t next = waitgraph_successor(c->g, node, k);

				if (next == CW_SNAP_NONE)
					break;
				may_go = c->g->component[next] != c->component || c->is_free[next];
			}
			if (!may_go)
				continue;
			c->is_free[node] = moved = true;
			n_free++;
		}
	}
	return n_free == c->n_nodes;
}

int call_order_pivots(struct engine_context *s, uint32_t component, uint32_t **ret, uint32_t *ret_n)
{
	uint32_t total = s->g.n_ranks + s->g.n_gates;
	struct cycle c = { .g = &s->g, .component = component };
	uint32_t *pivots;

	*ret = NULL;
	*ret_n = 0;
	if (s->g.ranks_in[component] < 3 || s->g.ranks_in[component] > MAX_PIVOT_RANKS)
		return 0;
	pivots = cw_arena_new_array(&s->arena, uint32_t, s->g.ranks_in[component]);
	c.nodes = cw_arena_new_array(&s->arena, uint32_t, total);
	c.is_free = cw_arena_new_array(&s->arena, bool, total);
	if (!pivots || !c.nodes || !c.is_free)
		return -ENOMEM;
	for (uint32_t i = 0; i < total; i++)
		if (s->g.component[i] == component)
			c.nodes[c.n_nodes++] = i;
	*ret = pivots;
	for (uint32_t i = 0; i < c.n_nodes && c.nodes[i] < s->g.n_ranks; i++)
		if (frees_all(&c, c.nodes[i]))
			pivots[(*ret_n)++] = c.nodes[i];
	return 0;
}
