/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network connections of one communicator as edges: for each, the counts at both ends. Pure;
 * the memory comes from the caller's arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"

/* One end of an edge, for the op that both ends are compared in. */
struct connection_end {
	const struct cw_snap_connection *row; /* NULL = no open op: finished, or unknown */
	/*
	 * True if the counts below hold for the op of the edge. They come from the row, or the end
	 * has finished that op.
	 */
	bool is_known;
	uint32_t posted, ready, handed, done;
};

struct connection_edge {
	uint32_t sender, receiver; /* ranks in the communicator */
	/*
	 * The groups of ranks that exchange data without the network, as their first ranks. If the
	 * ranks of one node use the network among themselves, each rank is a group of its own.
	 */
	uint32_t from, to;
	uint32_t channel;
	bool is_p2p;
	uint64_t seq;   /* of the op; 0 = unknown */
	uint32_t steps; /* of the op on this edge */
	struct connection_end out, in;
};

/* The reason why an edge does not move on. */
enum connection_state {
	CONNECTION_FINISHED,
	CONNECTION_UNKNOWN,      /* one end is not known */
	CONNECTION_AT_NETWORK,   /* the network has the data, or the receiver's credit */
	CONNECTION_AT_SENDER,    /* the sender's proxy posts no steps, although it could */
	CONNECTION_AT_RECEIVER,  /* likewise the receiver's proxy */
	CONNECTION_FOR_CONSUMER, /* the receiver's GPU has data in its buffer */
	CONNECTION_FOR_PRODUCER, /* the sender's GPU has an empty buffer */
};

struct connection_edges {
	struct connection_edge *v; /* by sender, receiver, channel */
	uint32_t n;
	uint32_t *group; /* per member: its group, as in `from` and `to` */
};

/*
 * Pairs the rows of all members of the comm. Ignores impossible rows. Returns 0 or -ENOMEM.
 */
int connection_edges_find(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *arena,
			  struct connection_edges *ret);

enum connection_state connection_edge_state(const struct connection_edge *e);
