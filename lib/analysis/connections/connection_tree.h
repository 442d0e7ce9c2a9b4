/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a collective's data through one channel. NCCL records the algorithm nowhere, but its
 * connections show it. Pure.
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

/* A group of ranks in a channel (connection_edge.from). */
struct connection_node {
	uint32_t group;
	const struct connection_edge **edges; /* all edges of the group in the channel */
	uint32_t n_edges;
	uint32_t parent; /* of a tree: index of its node; CW_SNAP_NONE = the root */
	uint32_t visit;  /* private */
};

struct connection_channel {
	enum connection_way way;
	struct connection_node *nodes; /* by group */
	uint32_t n_nodes;
	bool is_root_known; /* of a tree: false if the root is a guess */
};

/*
 * Finds the nodes and the way of one channel. `edges` are the channel's edges. Returns 0 or
 * -ENOMEM.
 */
int connection_channel_find(const struct connection_edge **edges, uint32_t n_edges,
			    struct cw_arena *arena, struct connection_channel *ret);

/* Returns the other group of the edge, as an index into nodes. */
uint32_t connection_channel_peer(const struct connection_channel *ch, uint32_t node,
				 const struct connection_edge *e);
