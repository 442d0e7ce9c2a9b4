/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/apart.h"

#include <errno.h>

static uint32_t find(const struct apart *p, uint32_t node)
{
	while (p->parent[node] != node) {
		p->parent[node] = p->parent[p->parent[node]];
		node = p->parent[node];
	}
	return node;
}

static void join(struct apart *p, uint32_t x, uint32_t y)
{
	x = find(p, x);
	y = find(p, y);
	if (x < y)
		p->parent[y] = x;
	else
		p->parent[x] = y;
}

int apart_init(const struct waitgraph *g, struct cw_arena *a, struct apart *ret)
{
	uint32_t n = g->n_ranks + g->n_gates;

	ret->parent = cw_arena_new_array(a, uint32_t, n);
	if (!ret->parent)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ret->parent[i] = i;
	for (uint32_t i = 0; i < g->n_gates; i++) {
		const struct gate *gate = &g->gates[i];
		uint32_t node = waitgraph_gate_node(g, i);

		for (uint32_t k = 0; k < gate->n_waiters; k++)
			join(ret, node, gate->waiters[k]);
		for (uint32_t k = 0; k < gate->n_missing; k++)
			join(ret, node, gate->missing[k]);
		if (gate->lower != CW_SNAP_NONE)
			join(ret, node, waitgraph_gate_node(g, gate->lower));
	}
	return 0;
}

uint32_t apart_of(const struct apart *p, const struct waitgraph *g, const struct finding *f)
{
	if (f->node != CW_SNAP_NONE)
		return find(p, f->node);
	return f->gate == CW_SNAP_NONE ? CW_SNAP_NONE : find(p, waitgraph_gate_node(g, f->gate));
}
