/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/order.h"

#include <errno.h>

enum passed { PASSED_UNKNOWN = 0, PASSED_NO, PASSED_YES };

static bool are_siblings(const struct cw_snap_comm *a, const struct cw_snap_comm *b)
{
	return a == b || (a->parent_id && a->parent_id == b->parent_id &&
			  a->split_ordinal == b->split_ordinal && a->instance == b->instance);
}

/* Whether a rank has passed the gate, or the one that is its counterpart in the rank's own group.
 */
static enum passed has_passed(const struct scene *s, const struct gate *gate, uint32_t rank)
{
	const struct cw_snapshot *snap = s->snap;

	for (uint32_t c = 0; c < snap->n_comms; c++) {
		const struct cw_snap_comm *comm = &snap->comms[c];

		if (!are_siblings(comm, &snap->comms[gate->comm]))
			continue;
		for (uint32_t m = 0; m < comm->nranks; m++) {
			const struct cw_snap_member *member = &comm->members[m];

			if (member->rank != rank)
				continue;
			if (!(member->known & CW_KNOWN_COMPLETED))
				return PASSED_UNKNOWN;
			return member->coll_completed >= gate->seq ? PASSED_YES : PASSED_NO;
		}
	}
	return PASSED_UNKNOWN;
}

uint32_t order_usual_gate(const struct scene *s, uint32_t component, uint32_t a, uint32_t b)
{
	uint32_t a_first = 0, b_first = 0;

	for (uint32_t r = 0; r < s->g.n_ranks; r++) {
		enum passed of_a, of_b;

		if (s->g.component[r] == component)
			continue;
		of_a = has_passed(s, &s->g.gates[a], r);
		of_b = has_passed(s, &s->g.gates[b], r);
		a_first += of_a == PASSED_YES && of_b == PASSED_NO;
		b_first += of_b == PASSED_YES && of_a == PASSED_NO;
	}
	if (a_first == b_first)
		return CW_SNAP_NONE;
	return a_first > b_first ? a : b;
}

/* A send or a receive is the business of two: that the others are elsewhere says nothing. */
bool *order_electors(struct scene *s, uint32_t component)
{
	const struct waitgraph *g = &s->g;
	uint32_t *memberships = arena_new_array(&s->arena, uint32_t, g->n_ranks);
	bool *is_counted = arena_new_array(&s->arena, bool, s->snap->n_comms);
	bool *electors = arena_new_array(&s->arena, bool, g->n_ranks);
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
