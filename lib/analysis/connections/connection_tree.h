/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a collective's data through one channel: a ring or a tree. NCCL does not record the
 * algorithm, but its connections show it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/connections/connection_edges.h"

enum connection_way {
	CONNECTION_WAY_UNKNOWN, /* the inputs and outputs of a GPU are not known */
	CONNECTION_WAY_RING,    /* each group has at most one neighbour before and one behind it */
	CONNECTION_WAY_TREE,    /* data go to the root and come back */
	CONNECTION_WAY_PAIR,    /* two groups, in a ring or a tree */
};

/* A group of ranks in a channel, numbered as in connection_edge.from. */
struct connection_node {
	uint32_t group;
	const struct connection_edge **edges; /* all edges of the group in the channel */
	uint32_t n_edges;
	uint32_t parent; /* in a tree: index of the parent; CW_SNAP_NONE = this is the root */
	uint32_t visit;  /* private to connection_tree.c */
};

struct connection_channel {
	enum connection_way way;
	struct connection_node *nodes; /* sorted by group */
	uint32_t n_nodes;
	bool is_root_known; /* in a tree: false if the root is a guess */
};

/*
 * Finds the nodes and the way of one channel. `edges` are the channel's edges. The nodes are
 * allocated in `arena`. Returns 0 or -ENOMEM.
 */
int connection_channel_find(const struct connection_edge **edges, uint32_t n_edges,
			    struct cw_arena *arena, struct connection_channel *ret);

/* Returns the node at the other end of the edge, as an index into nodes. */
uint32_t connection_channel_peer(const struct connection_channel *ch, uint32_t node,
				 const struct connection_edge *e);
