/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/independent_groups.h"

#include <errno.h>
#include <stdlib.h>

/* Returns the node that represents the part of `node`, and shortens the path to it. */
static uint32_t find(const struct independent_groups *p, uint32_t node)
{
	while (p->parent[node] != node) {
		p->parent[node] = p->parent[p->parent[node]];
		node = p->parent[node];
	}
	return node;
}

static void join(struct independent_groups *p, uint32_t x, uint32_t y)
{
	x = find(p, x);
	y = find(p, y);
	if (x < y)
		p->parent[y] = x;
	else
		p->parent[x] = y;
}

static int by_process(const void *pa, const void *pb)
{
	const struct cw_snap_rank *a = *(const struct cw_snap_rank *const *)pa;
	const struct cw_snap_rank *b = *(const struct cw_snap_rank *const *)pb;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->start_ticks != b->start_ticks)
		return a->start_ticks < b->start_ticks ? -1 : 1;
	return (a > b) - (a < b);
}

static int join_processes(const struct cw_snapshot *snap, struct cw_arena *a,
			  struct independent_groups *p)
{
	const struct cw_snap_rank **ranks =
		cw_arena_new_array(a, const struct cw_snap_rank *, snap->n_ranks);

	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		ranks[i] = &snap->ranks[i];
	qsort(ranks, snap->n_ranks, sizeof(*ranks), by_process);
	for (uint32_t i = 1; i < snap->n_ranks; i++)
		if (cw_snap_rank_shares_process(ranks[i - 1], ranks[i]))
			join(p, (uint32_t)(ranks[i - 1] - snap->ranks),
			     (uint32_t)(ranks[i] - snap->ranks));
	return 0;
}

/*
 * Joins all ranks that wait for communicators which can no longer be made. Each of these ranks
 * waits for the others.
 */
static void join_makings(const struct cw_snapshot *snap, const struct waitgraph *g,
			 struct independent_groups *p)
{
	uint32_t first = CW_SNAP_NONE;

	if (!waitgraph_crossed_makings(snap, g))
		return;
	for (uint32_t i = 0; i < g->n_gates; i++) {
		if (g->gates[i].kind != GATE_INIT)
			continue;
		if (first == CW_SNAP_NONE)
			first = waitgraph_gate_node(g, i);
		join(p, first, waitgraph_gate_node(g, i));
	}
}

int independent_groups_init(const struct cw_snapshot *snap, const struct waitgraph *g,
			    struct cw_arena *a, struct independent_groups *ret)
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
	join_makings(snap, g, ret);
	return join_processes(snap, a, ret);
}

uint32_t independent_groups_find(const struct independent_groups *p, const struct waitgraph *g,
				 const struct finding *f)
{
	if (f->node != CW_SNAP_NONE)
		return find(p, f->node);
	return f->gate == CW_SNAP_NONE ? CW_SNAP_NONE : find(p, waitgraph_gate_node(g, f->gate));
}
