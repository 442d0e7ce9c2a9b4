/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait-for graph: which rank waits for which other ranks.
 *
 * A rank waits in a call until certain members of the comm have come. The graph has a node for such
 * a call, a *gate*. Ranks wait at the gate, and the missing members keep it shut. The graph stays
 * as small as the comms: if 4,096 ranks wait for one rank, the graph has one gate instead of 4,096
 * edges.
 *
 * The gates of one comm share their lists. A member that is missing at coll_seq 7 is also missing
 * at 8. So the gate of 8 lists only members that are not missing at 7, and refers to the lower gate
 * for the others.
 *
 *	rank ──waits at──► gate ──kept shut by──► missing rank ──waits at──► gate …
 *
 * A gate opens when all missing members have come. A cycle is therefore a deadlock, even if its
 * gates wait for further ranks. The causes are at the ends of the paths. An end is a missing rank
 * that waits at no gate, or a gate without missing members that still does not open.
 *
 * Pure; one graph per snapshot, allocated in the caller's arena; O(members + ops of windows).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"

enum gate_kind {
	GATE_COLLECTIVE, /* waits for all members of the comm */
	GATE_ROOT,       /* waits for the root alone, which sends or receives all data */
	GATE_P2P,        /* waits for the counterparts of sends and receives */
	GATE_HOST,       /* a host-blocking call (split, finalize and similar) of all members */
	GATE_INIT,       /* the call that makes the comm; waits for all members */
};

struct gate {
	uint32_t comm;
	enum gate_kind kind;
	uint64_t seq;      /* coll_seq of a collective, p2p_seq of a message, otherwise 0 */
	uint32_t op_kind;  /* enum cw_op_kind of the call */
	uint32_t n_unseen; /* number of members that are not visible and so may be missing */
	/* Number of members in n_unseen that left this call and now make another comm. */
	uint32_t n_again;
	/*
	 * Labels of the unseen members; NULL = unknown. We know them if the members are numbered
	 * like the ranks of the job.
	 */
	int32_t *unseen;
	uint32_t *waiters; /* rank indices */
	uint32_t n_waiters;
	uint32_t *missing; /* rank indices, without the missing ranks of `lower` */
	uint32_t n_missing;
	uint32_t n_missing_all; /* number of missing ranks, including those of the lower gates */
	uint32_t lower, upper;  /* neighbouring gates of the same comm, or CW_SNAP_NONE */
	uint32_t n_soft;        /* number of waiters whose device progress is not known */
	/*
	 * Number of missing halves of messages that recordings of open calls do not list. Such a
	 * half may have completed.
	 */
	uint32_t n_unlisted;
	/* Number of members of the comm that may be inside an unobserved op. */
	uint32_t n_unobserved;
	/* Time at which the oldest waiter entered the call; 0 = unknown. */
	int64_t since_ns;
	uint32_t oldest;        /* rank index of the waiter that has waited longest */
	const struct cw_op *op; /* op of that waiter; NULL = not in the record */
};

struct waitgraph {
	uint32_t n_ranks, n_gates, cap_gates;
	struct gate *gates;
	/* Rank r waits at the gates waits[wait_start[r]] … waits[wait_start[r + 1] - 1]. */
	uint32_t *wait_start, *waits;
	/*
	 * The gates that list rank r as missing: misses[miss_start[r]] and so on, like `waits`.
	 * Higher gates of the same comm do not list r again.
	 */
	uint32_t *miss_start, *misses;
	/* The strongly connected component of each node, ranks first, then gates. */
	uint32_t *component;
	uint32_t n_components;
	uint32_t *ranks_in; /* per component: its number of ranks */
	/*
	 * Per rank: the comm in which the rank may be inside an op that got no progress writes, and
	 * that no member is known to have completed. CW_SNAP_NONE = no such comm.
	 */
	uint32_t *unobserved;
	/*
	 * Per rank: the oldest op, in any comm, that is enqueued but that the rank's device has not
	 * reached; and the comm of that op. NULL = no such op is known.
	 */
	const struct cw_op **behind;
	uint32_t *behind_comm;
};

/* Returns the node of a gate. The graph numbers the ranks first. */
static inline uint32_t waitgraph_gate_node(const struct waitgraph *g, uint32_t gate)
{
	return g->n_ranks + gate;
}

/* True if the rank waits at a gate. */
static inline bool waitgraph_waits(const struct waitgraph *g, uint32_t rank)
{
	return g->wait_start[rank + 1] > g->wait_start[rank];
}

/* True if the rank is missing at a gate. */
static inline bool waitgraph_is_missing(const struct waitgraph *g, uint32_t rank)
{
	return g->miss_start[rank + 1] > g->miss_start[rank];
}

/* Builds the graph in `a`. Returns 0 or -ENOMEM. */
int cw_waitgraph_build(const struct cw_snapshot *snap, struct cw_arena *a, struct waitgraph *ret);

/*
 * Returns the number of GATE_INIT gates if no communicator of the job can be made any more. All
 * ranks of the job then wait for communicators, directly or behind other ranks. Returns 0
 * otherwise, or if there is only one such gate.
 *
 * Before a communicator is made, we mostly do not know its members. But a rank that waits in one
 * call enters no other call. If all ranks wait, no rank is left that could come to a GATE_INIT
 * gate. A rank that makes each call in a thread of its own could still come.
 */
uint32_t waitgraph_crossed_makings(const struct cw_snapshot *snap, const struct waitgraph *g);

/* True if the rank waits for a communicator to be made. */
static inline bool waitgraph_is_making(const struct waitgraph *g, uint32_t rank)
{
	for (uint32_t i = g->wait_start[rank]; i < g->wait_start[rank + 1]; i++)
		if (g->gates[g->waits[i]].kind == GATE_INIT)
			return true;
	return false;
}

/* Returns the i-th node that `node` waits for; CW_SNAP_NONE after the last. */
uint32_t waitgraph_successor(const struct waitgraph *g, uint32_t node, uint32_t i);

/*
 * Returns the other half of a send or receive of member `me`. NULL = the known ops of the peer do
 * not include it. *ret_peer is the peer's comm rank.
 */
const struct cw_op *waitgraph_counterpart(const struct cw_snap_comm *c, uint32_t me,
					  const struct cw_op *op, uint32_t *ret_peer);

/* True if two ops of one member complete together: they are the same op, or belong to one group. */
bool waitgraph_same_launch(const struct cw_op *a, const struct cw_op *b);

/*
 * The result of a search: the nodes that wait for the starting nodes, directly or indirectly
 * ("upstream").
 */
struct upstream {
	/* Nodes in the order of the search, the nearest first; the starting nodes come first. */
	uint32_t *order;
	uint32_t n_order; /* number of nodes found */
	/*
	 * Per node: the node that it waits for on the way to a starting node; CW_SNAP_NONE = none.
	 */
	uint32_t *next;
	/* Per node: distance from the starting nodes; CW_SNAP_NONE = not upstream. */
	uint32_t *hops;
};

/*
 * Allocates the arrays of *ret in `a`. One struct upstream serves many searches. Returns 0 or
 * -ENOMEM.
 */
int upstream_init(const struct waitgraph *g, struct cw_arena *a, struct upstream *ret);

/*
 * Searches upstream of n starting nodes. O(nodes found and their edges), because the function
 * resets only the nodes of the last search.
 */
void upstream_search(const struct waitgraph *g, const uint32_t *nodes, uint32_t n,
		     struct upstream *u);
