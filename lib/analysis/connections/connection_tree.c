/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a tree each group has edges in both directions to its parent and to its children. Data first
 * go up to the root and then come down. So between two groups, the child has sent at least as many
 * steps as its parent.
 *
 * We choose the root that contradicts the fewest of these counts. If nothing has moved between some
 * groups, several roots fit. NCCL's root has one child (ncclGetBtree() in src/graph/trees.cc). The
 * root is the first, the last or the second rank.
 */
#include "analysis/connections/connection_tree.h"

#include <errno.h>
#include <stdlib.h>

/*
 * In NCCL's trees, a group has at most three children and a parent (NCCL_MAX_TREE_ARITY in its
 * src/include/device.h). If a group has more edges, the channel is no tree, or its records are
 * wrong.
 */
#define MOST_EDGES 8u

static int compare_groups(const void *a, const void *b)
{
	uint32_t x = ((const struct connection_node *)a)->group;
	uint32_t y = ((const struct connection_node *)b)->group;

	return x < y ? -1 : x > y;
}

static uint32_t node_of(const struct connection_channel *ch, uint32_t group)
{
	uint32_t low = 0, high = ch->n_nodes;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ch->nodes[middle].group < group)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t connection_channel_peer(const struct connection_channel *ch, uint32_t node,
				 const struct connection_edge *e)
{
	uint32_t group = ch->nodes[node].group;

	return node_of(ch, e->from == group ? e->to : e->from);
}

static int find_nodes(const struct connection_edge **edges, uint32_t n_edges,
		      struct cw_arena *arena, struct connection_channel *ch)
{
	const struct connection_edge **of_nodes =
		cw_arena_new_array(arena, const struct connection_edge *, 2 * (size_t)n_edges);
	uint32_t n = 0, kept = 0;

	ch->nodes = cw_arena_new_array(arena, struct connection_node, 2 * (size_t)n_edges);
	if (!of_nodes || !ch->nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_edges; i++) {
		ch->nodes[n++].group = edges[i]->from;
		ch->nodes[n++].group = edges[i]->to;
	}
	qsort(ch->nodes, n, sizeof(*ch->nodes), compare_groups);
	for (uint32_t i = 0; i < n; i++) {
		if (!kept || ch->nodes[kept - 1].group != ch->nodes[i].group)
			ch->nodes[kept++] = (struct connection_node){ .group = ch->nodes[i].group };
		ch->nodes[kept - 1].n_edges++;
	}
	ch->n_nodes = kept;
	for (uint32_t i = 0, at = 0; i < kept; i++) {
		ch->nodes[i].edges = &of_nodes[at];
		at += ch->nodes[i].n_edges;
		ch->nodes[i].n_edges = 0;
		ch->nodes[i].parent = CW_SNAP_NONE;
	}
	for (uint32_t i = 0; i < n_edges; i++) {
		struct connection_node *from = &ch->nodes[node_of(ch, edges[i]->from)];
		struct connection_node *to = &ch->nodes[node_of(ch, edges[i]->to)];

		from->edges[from->n_edges++] = edges[i];
		to->edges[to->n_edges++] = edges[i];
	}
	return 0;
}

static enum connection_way way_of(const struct connection_channel *ch)
{
	bool is_ring = true, is_tree = false;

	for (uint32_t i = 0; i < ch->n_nodes; i++) {
		uint32_t n_in = 0, n_out = 0;

		if (ch->nodes[i].n_edges > MOST_EDGES)
			return CONNECTION_WAY_UNKNOWN;
		for (uint32_t k = 0; k < ch->nodes[i].n_edges; k++) {
			const struct connection_edge *e = ch->nodes[i].edges[k];
			bool sends = e->from == ch->nodes[i].group;

			n_in += !sends;
			n_out += sends;
			for (uint32_t j = 0; j < k; j++)
				is_tree = is_tree ||
					  connection_channel_peer(ch, i, ch->nodes[i].edges[j]) ==
						  connection_channel_peer(ch, i, e);
		}
		is_ring = is_ring && n_in <= 1 && n_out <= 1;
	}
	if (ch->n_nodes == 2)
		return CONNECTION_WAY_PAIR;
	if (is_tree)
		return CONNECTION_WAY_TREE;
	return is_ring ? CONNECTION_WAY_RING : CONNECTION_WAY_UNKNOWN;
}

static uint32_t sent(const struct connection_edge *e)
{
	if (e->out.is_known)
		return e->out.ready;
	return e->in.is_known ? e->in.ready : 0;
}

/*
 * Returns 1 if node a has sent more to b than b to a, so that b is nearer to the root. Returns -1
 * for the opposite, and 0 if the counts are equal.
 */
static int up_from(const struct connection_channel *ch, uint32_t a, uint32_t b)
{
	int64_t more = 0;

	for (uint32_t k = 0; k < ch->nodes[a].n_edges; k++) {
		const struct connection_edge *e = ch->nodes[a].edges[k];

		if (connection_channel_peer(ch, a, e) == b)
			more += e->from == ch->nodes[a].group ? (int64_t)sent(e)
							      : -(int64_t)sent(e);
	}
	return more > 0 ? 1 : more < 0 ? -1 : 0;
}

/*
 * Visits the nodes from the root on, and sets their parents. Fills `order`. Returns false if the
 * edges are no tree: they contain a circle, or do not join all nodes.
 */
static bool hang_from(struct connection_channel *ch, uint32_t root, uint32_t *order)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ch->n_nodes; i++)
		ch->nodes[i].visit = 0;
	ch->nodes[root].parent = CW_SNAP_NONE;
	ch->nodes[root].visit = 1;
	order[n++] = root;
	for (uint32_t at = 0; at < n; at++)
		for (uint32_t k = 0; k < ch->nodes[order[at]].n_edges; k++) {
			uint32_t peer = connection_channel_peer(ch, order[at],
								ch->nodes[order[at]].edges[k]);

			if (peer == ch->nodes[order[at]].parent ||
			    (ch->nodes[peer].visit && ch->nodes[peer].parent == order[at]))
				continue;
			if (ch->nodes[peer].visit)
				return false;
			ch->nodes[peer].visit = 1;
			ch->nodes[peer].parent = order[at];
			order[n++] = peer;
		}
	return n == ch->n_nodes;
}

/* Returns how well the node fits NCCL's root. We use it if the counts fit several roots. */
static int fits_root(const struct connection_channel *ch, uint32_t node)
{
	int by_place = node == 0 ? 3 : node == ch->n_nodes - 1 ? 2 : node == 1 ? 1 : 0;
	uint32_t n_peers = 0;

	for (uint32_t k = 0; k < ch->nodes[node].n_edges; k++) {
		uint32_t peer = connection_channel_peer(ch, node, ch->nodes[node].edges[k]), j = 0;

		while (j < k && connection_channel_peer(ch, node, ch->nodes[node].edges[j]) != peer)
			j++;
		n_peers += j == k;
	}
	return by_place + (n_peers == 1 ? 4 : 0);
}

/*
 * Chooses the root. The score of a root is the number of edges that lead up to it, minus the edges
 * that lead down. If we move the root along one edge, only this edge changes its direction.
 */
static int find_root(struct connection_channel *ch, struct cw_arena *arena)
{
	uint32_t *order = cw_arena_new_array(arena, uint32_t, ch->n_nodes);
	int *score = cw_arena_new_array(arena, int, ch->n_nodes);
	uint32_t best = 0, n_best = 0;

	if (!order || !score)
		return -ENOMEM;
	if (!hang_from(ch, 0, order)) {
		ch->way = CONNECTION_WAY_UNKNOWN;
		return 0;
	}
	for (uint32_t i = 1; i < ch->n_nodes; i++)
		score[0] += up_from(ch, order[i], ch->nodes[order[i]].parent);
	for (uint32_t i = 1; i < ch->n_nodes; i++) {
		uint32_t node = order[i], parent = ch->nodes[node].parent;

		score[node] = score[parent] - 2 * up_from(ch, node, parent);
	}
	for (uint32_t i = 1; i < ch->n_nodes; i++)
		if (score[i] > score[best] ||
		    (score[i] == score[best] && fits_root(ch, i) > fits_root(ch, best)))
			best = i;
	for (uint32_t i = 0; i < ch->n_nodes; i++)
		n_best += score[i] == score[best];
	ch->is_root_known = n_best == 1;
	(void)hang_from(ch, best, order); /* cannot fail: the edges are a tree from any root */
	return 0;
}

int connection_channel_find(const struct connection_edge **edges, uint32_t n_edges,
			    struct cw_arena *arena, struct connection_channel *ret)
{
	struct connection_channel ch = { 0 };
	int r = find_nodes(edges, n_edges, arena, &ch);

	if (r < 0)
		return r;
	ch.way = way_of(&ch);
	if (ch.way == CONNECTION_WAY_TREE)
		r = find_root(&ch, arena);
	if (r == 0)
		*ret = ch;
	return r;
}
