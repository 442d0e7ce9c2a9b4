/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches in the wait-for graph: for cycles (Tarjan's algorithm without recursion), and for the
 * nodes upstream of given nodes.
 */
#include "analysis/waits/waitgraph_scc.h"

#include <errno.h>
#include <string.h>

uint32_t waitgraph_successor(const struct waitgraph *g, uint32_t node, uint32_t i)
{
	const struct gate *gate;

	if (node < g->n_ranks) {
		uint32_t at = g->wait_start[node] + i;

		return at < g->wait_start[node + 1] ? waitgraph_gate_node(g, g->waits[at])
						    : CW_SNAP_NONE;
	}
	gate = &g->gates[node - g->n_ranks];
	if (i < gate->n_missing)
		return gate->missing[i];
	if (i == gate->n_missing && gate->lower != CW_SNAP_NONE)
		return waitgraph_gate_node(g, gate->lower);
	return CW_SNAP_NONE;
}

struct tarjan {
	struct waitgraph *g;
	uint32_t *index;  /* order of discovery, from 1; 0 = not discovered */
	uint32_t *low;    /* lowest index that the node is known to reach */
	uint32_t *open;   /* stack of discovered nodes whose component is not complete */
	uint32_t *path;   /* stack of the nodes from the start to the current one */
	uint32_t *cursor; /* per node: the successor to follow next */
	uint32_t n_open, n_path, next_index;
};

static void enter_node(struct tarjan *t, uint32_t node)
{
	t->index[node] = t->low[node] = ++t->next_index;
	t->open[t->n_open++] = node;
	t->path[t->n_path++] = node;
}

/*
 * Follows all paths from `start`, and completes the components of all nodes that it discovers. A
 * node is the root of its component if it reaches no older node that is still open.
 */
static void visit_from(struct tarjan *t, uint32_t start)
{
	struct waitgraph *g = t->g;

	enter_node(t, start);
	while (t->n_path) {
		uint32_t node = t->path[t->n_path - 1];
		uint32_t next = waitgraph_successor(g, node, t->cursor[node]), member;

		if (next == CW_SNAP_NONE) {
			if (t->low[node] == t->index[node]) {
				do {
					member = t->open[--t->n_open];
					g->component[member] = g->n_components;
					if (member < g->n_ranks)
						g->ranks_in[g->n_components]++;
				} while (member != node);
				g->n_components++;
			}
			t->n_path--;
			if (t->n_path && t->low[node] < t->low[t->path[t->n_path - 1]])
				t->low[t->path[t->n_path - 1]] = t->low[node];
			continue;
		}
		t->cursor[node]++;
		if (!t->index[next])
			enter_node(t, next);
		else if (g->component[next] == CW_SNAP_NONE && t->index[next] < t->low[node])
			t->low[node] = t->index[next];
	}
}

int waitgraph_find_cycles(struct waitgraph *g, struct cw_arena *a)
{
	uint32_t n = g->n_ranks + g->n_gates;
	struct tarjan t = { .g = g };

	g->component = cw_arena_new_array(a, uint32_t, n);
	g->ranks_in = cw_arena_new_array(a, uint32_t, n);
	t.index = cw_arena_new_array(a, uint32_t, n);
	t.low = cw_arena_new_array(a, uint32_t, n);
	t.open = cw_arena_new_array(a, uint32_t, n);
	t.path = cw_arena_new_array(a, uint32_t, n);
	t.cursor = cw_arena_new_array(a, uint32_t, n);
	if (!g->component || !g->ranks_in || !t.index || !t.low || !t.open || !t.path || !t.cursor)
		return -ENOMEM;
	memset(g->component, 0xff, n * sizeof(*g->component));
	for (uint32_t node = 0; node < n; node++)
		if (!t.index[node])
			visit_from(&t, node);
	return 0;
}

int upstream_init(const struct waitgraph *g, struct cw_arena *a, struct upstream *ret)
{
	uint32_t n = g->n_ranks + g->n_gates;

	*ret = (struct upstream){
		.order = cw_arena_new_array(a, uint32_t, n),
		.next = cw_arena_new_array(a, uint32_t, n),
		.hops = cw_arena_new_array(a, uint32_t, n),
	};
	if (!ret->order || !ret->next || !ret->hops)
		return -ENOMEM;
	memset(ret->next, 0xff, n * sizeof(*ret->next));
	memset(ret->hops, 0xff, n * sizeof(*ret->hops));
	return 0;
}

/* Adds a node to the search, unless the search has already found it. */
static void found(struct upstream *u, uint32_t node, uint32_t next, uint32_t hops)
{
	if (u->hops[node] != CW_SNAP_NONE)
		return;
	u->hops[node] = hops;
	u->next[node] = next;
	u->order[u->n_order++] = node;
}

void upstream_search(const struct waitgraph *g, const uint32_t *nodes, uint32_t n,
		     struct upstream *u)
{
	for (uint32_t i = 0; i < u->n_order; i++)
		u->hops[u->order[i]] = u->next[u->order[i]] = CW_SNAP_NONE;
	u->n_order = 0;
	for (uint32_t i = 0; i < n; i++)
		found(u, nodes[i], CW_SNAP_NONE, 0);
	for (uint32_t i = 0; i < u->n_order; i++) {
		uint32_t node = u->order[i];
		uint32_t hops = u->hops[node] + 1;

		if (node < g->n_ranks) {
			for (uint32_t k = g->miss_start[node]; k < g->miss_start[node + 1]; k++)
				found(u, waitgraph_gate_node(g, g->misses[k]), node, hops);
		} else {
			const struct gate *gate = &g->gates[node - g->n_ranks];

			for (uint32_t k = 0; k < gate->n_waiters; k++)
				found(u, gate->waiters[k], node, hops);
			if (gate->upper != CW_SNAP_NONE)
				found(u, waitgraph_gate_node(g, gate->upper), node, hops);
		}
	}
}
