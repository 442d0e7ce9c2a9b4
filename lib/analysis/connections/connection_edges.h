/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network connections of one communicator as edges. An edge has the counts of both its ends.
 * Pure; the memory comes from the caller's arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"

/* One end of an edge. We compare both ends in the same op, the op of the edge. */
struct connection_end {
	const struct cw_snap_connection *row; /* NULL = no open op: finished, or unknown */
	/*
	 * True if the counts below are valid for the op of the edge. The counts come from the row.
	 * An end that has finished the op has all steps in each count.
	 */
	bool is_known;
	uint32_t posted, ready, handed, done;
};

struct connection_edge {
	uint32_t sender, receiver; /* ranks in the communicator */
	/*
	 * The groups of sender and receiver. The ranks of a group exchange data without the
	 * network, and the number of a group is its first comm rank. If ranks of one node use the
	 * network among themselves, each rank is a group of its own.
	 */
	uint32_t from, to;
	uint32_t channel;
	bool is_p2p;
	uint64_t seq;   /* number of the op; 0 = unknown */
	uint32_t steps; /* number of the op's steps on this edge */
	struct connection_end out, in;
};

/* The reason why an edge does not move on. */
enum connection_state {
	CONNECTION_FINISHED,
	CONNECTION_UNKNOWN,      /* one end is not known */
	CONNECTION_AT_NETWORK,   /* the network has the data, or the receiver's credit */
	CONNECTION_AT_SENDER,    /* the sender's proxy posts no buffers, although it could */
	CONNECTION_AT_RECEIVER,  /* the receiver's proxy posts no buffers, although it could */
	CONNECTION_FOR_CONSUMER, /* the receiver's GPU has data in its buffer */
	CONNECTION_FOR_PRODUCER, /* the sender's GPU has an empty buffer */
};

struct connection_edges {
	struct connection_edge *v; /* sorted by sender, receiver and channel */
	uint32_t n;
	uint32_t *group; /* per member: its group, as in `from` and `to` */
};

/*
 * Pairs the rows of all members of the comm. Ignores impossible rows. Returns 0 or -ENOMEM.
 */
int connection_edges_find(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *arena,
			  struct connection_edges *ret);

enum connection_state connection_edge_state(const struct connection_edge *e);
