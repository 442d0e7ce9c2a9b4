/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/chain.h"

#include <errno.h>

#include "analysis/align/position.h"
#include "analysis/culprit/diagnosis.h"

/*
 * The maximum length of a chain. A longer chain explains no more, so we keep only the waits next to
 * the culprit.
 */
#define MAX_CHAIN 16

int chain_mark_downstream(struct engine_context *s, const uint32_t *ranks, uint32_t n, bool *seen)
{
	const struct waitgraph *g = &s->g;
	uint32_t *queue = cw_arena_new_array(&s->arena, uint32_t, (size_t)g->n_ranks + g->n_gates);
	uint32_t n_queue = 0;

	if (!queue)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		seen[ranks[i]] = true;
		queue[n_queue++] = ranks[i];
	}
	for (uint32_t i = 0; i < n_queue; i++) {
		uint32_t node = queue[i], next;

		for (uint32_t k = 0; (next = waitgraph_successor(g, node, k)) != CW_SNAP_NONE; k++)
			if (!seen[next]) {
				seen[next] = true;
				queue[n_queue++] = next;
			}
	}
	return 0;
}

/*
 * Returns the rank's own op at the gate. If the record lacks it, returns the op of the gate's
 * oldest waiter.
 */
static struct cw_op op_at(const struct engine_context *s, const struct gate *gate, uint32_t rank)
{
	uint32_t m = engine_context_comm_rank(s, gate->comm, rank);
	const struct cw_snap_member *member;

	if (m != CW_SNAP_NONE) {
		member = &s->snap->comms[gate->comm].members[m];
		if (member->pending && !position_is_lost(member->pending))
			return *member->pending;
		if (member->last && member->last->coll_seq == gate->seq)
			return *member->last;
	}
	return gate->op ? *gate->op
			: (struct cw_op){ .kind = gate->op_kind,
					  .dtype = CW_DTYPE_NONE,
					  .redop = CW_REDOP_NONE,
					  .root = CW_PEER_NONE,
					  .peer = CW_PEER_NONE };
}

/*
 * Goes one step from the rank towards the start of the search: to the gate at which the rank waits,
 * and to the rank that is missing there. Returns that rank; CW_SNAP_NONE = `rank` is the start.
 */
static uint32_t step(const struct engine_context *s, uint32_t rank, struct cw_wait *ret)
{
	const struct waitgraph *g = &s->g;
	uint32_t node = s->up.next[rank];
	const struct gate *gate;

	if (node == CW_SNAP_NONE)
		return CW_SNAP_NONE;
	gate = &g->gates[node - g->n_ranks];
	*ret = (struct cw_wait){ .rank = rank, .comm = gate->comm, .op = op_at(s, gate, rank) };
	/* We skip the lower gates of the same comm until we come to the missing rank. */
	while (node != CW_SNAP_NONE && node >= g->n_ranks)
		node = s->up.next[node];
	ret->waits_for = node;
	return node;
}

/* Fills the chain with the waits that lead from rank `start` to the start of the search. */
static int follow(struct diagnosis *diag, uint32_t start)
{
	struct cw_verdict *v = diag->v;
	const struct engine_context *s = diag->s;
	struct cw_wait wait;
	uint32_t n = 0, at = start;

	while (s->up.next[at] != CW_SNAP_NONE) {
		n++;
		at = step(s, at, &wait);
		if (at == CW_SNAP_NONE)
			break;
	}
	v->chain = cw_arena_new_array(diag->arena, struct cw_wait, n < MAX_CHAIN ? n : MAX_CHAIN);
	if (!v->chain)
		return -ENOMEM;
	for (at = start; n; n--) {
		uint32_t next = step(s, at, &wait);

		if (n <= MAX_CHAIN)
			v->chain[v->n_chain++] = wait;
		at = next;
	}
	return 0;
}

static bool lower_label(const struct engine_context *s, uint32_t a, uint32_t b)
{
	return s->snap->ranks[a].rank < s->snap->ranks[b].rank;
}

/*
 * Fills the chain with the shortest way around the cycle, from the rank with the lowest label. We
 * search upstream of this rank. The way begins at the nearest rank that it waits for.
 */
static int go_around(struct diagnosis *diag)
{
	struct engine_context *s = diag->s;
	const struct waitgraph *g = &s->g;
	uint32_t component = g->component[diag->main->node];
	uint32_t first = CW_SNAP_NONE, best = CW_SNAP_NONE, via = CW_SNAP_NONE;
	struct cw_wait *rest;
	uint32_t n_rest;
	int r;

	for (uint32_t i = 0; i < g->n_ranks; i++)
		if (g->component[i] == component &&
		    (first == CW_SNAP_NONE || lower_label(s, i, first)))
			first = i;
	upstream_search(g, &first, 1, &s->up);
	for (uint32_t k = g->wait_start[first]; k < g->wait_start[first + 1]; k++) {
		uint32_t gate = g->waits[k];

		for (uint32_t at = gate; at != CW_SNAP_NONE; at = g->gates[at].lower)
			for (uint32_t i = 0; i < g->gates[at].n_missing; i++) {
				uint32_t rank = g->gates[at].missing[i];

				if (s->up.hops[rank] == CW_SNAP_NONE)
					continue;
				if (best == CW_SNAP_NONE || s->up.hops[rank] < s->up.hops[best] ||
				    (s->up.hops[rank] == s->up.hops[best] &&
				     lower_label(s, rank, best))) {
					best = rank;
					via = gate;
				}
			}
	}
	if (best == CW_SNAP_NONE)
		return 0;
	r = follow(diag, best);
	if (r < 0)
		return r;
	rest = diag->v->chain;
	n_rest = diag->v->n_chain;
	diag->v->chain = cw_arena_new_array(diag->arena, struct cw_wait, (size_t)n_rest + 1);
	if (!diag->v->chain)
		return -ENOMEM;
	diag->v->chain[0] = (struct cw_wait){ .rank = first,
					      .comm = g->gates[via].comm,
					      .op = op_at(s, &g->gates[via], first),
					      .waits_for = best };
	for (uint32_t i = 0; i < n_rest; i++)
		diag->v->chain[i + 1] = rest[i];
	diag->v->n_chain = n_rest + 1;
	return 0;
}

int chain_describe(struct diagnosis *diag)
{
	const struct upstream *up = &diag->s->up;
	uint32_t furthest = CW_SNAP_NONE;

	if (diag->main->verdict_class == CW_CLASS_DEADLOCK)
		return go_around(diag);
	for (uint32_t i = 0; i < diag->v->n_victims; i++) {
		uint32_t rank = diag->v->victims[i];

		/*
		 * Victims are sorted by label. So the victim with the lowest label wins among the
		 * furthest.
		 */
		if (furthest == CW_SNAP_NONE || up->hops[rank] > up->hops[furthest])
			furthest = rank;
	}
	return furthest == CW_SNAP_NONE ? 0 : follow(diag, furthest);
}
