/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait-for graph: which rank waits for which other ranks.
 *
 * A rank waits in a call until certain members of the comm have come. So in the graph, ranks wait
 *at *gates*, and the members that are missing at a gate keep it shut. The graph stays as small as
 *the comms: if 4,096 ranks wait for one rank, that is one gate instead of 4,096 edges. The gates of
 *one comm share their lists. A member that is missing at coll_seq 7 is missing at 8, too. So the
 *gate of 8 lists only members that are not missing at 7, and refers to the lower gate for the
 *others.
 *
 *	rank ──waits at──► gate ──kept shut by──► missing rank ──waits at──► gate …
 *
 * A gate opens when all missing members have come. A cycle is therefore a deadlock, whatever else
 * its gates wait for. The reasons stand at the ends of the paths: a missing rank that waits at no
 * gate, or a gate without missing members that still does not open.
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
	uint64_t seq;      /* coll_seq of a collective, p2p_seq, else 0 */
	uint32_t op_kind;  /* enum cw_op_kind of the call */
	uint32_t n_unseen; /* members that are not visible: they may be missing */
	uint32_t n_again;  /* members in n_unseen that left this call and now make another comm */
	/* Labels of the unseen members, if members are numbered like the job; NULL = unknown. */
	int32_t *unseen;
	uint32_t *waiters; /* rank indices */
	uint32_t n_waiters;
	uint32_t *missing; /* rank indices, without the missing ranks of `lower` */
	uint32_t n_missing;
	uint32_t n_missing_all; /* including the lower gates */
	uint32_t lower, upper;  /* neighbouring gates of the same comm, or CW_SNAP_NONE */
	uint32_t n_soft;        /* waiters whose device progress is not known */
	uint32_t n_unobserved;  /* members of its comm that may be inside an unobserved op */
	int64_t since_ns;       /* enter time of the oldest waiter; 0 = unknown */
	uint32_t oldest;        /* rank index of the oldest waiter */
	const struct cw_op *op; /* op of the oldest waiter; NULL = not in the record */
};

struct waitgraph {
	uint32_t n_ranks, n_gates, cap_gates;
	struct gate *gates;
	/* Rank r waits at the gates waits[wait_start[r]] … waits[wait_start[r + 1] - 1]. */
	uint32_t *wait_start, *waits;
	/* Gates that list rank r as missing. The gates above these do not list it again. */
	uint32_t *miss_start, *misses;
	/* The strongly connected component of each node, ranks first, then gates. */
	uint32_t *component;
	uint32_t n_components;
	uint32_t *ranks_in; /* per component: its number of ranks */
	/*
	 * Per rank: the comm in which it may be inside an op that got no progress writes. No member
	 * is known to have completed that op. CW_SNAP_NONE = no such comm.
	 */
	uint32_t *unobserved;
	/*
	 * Per rank: its oldest op, of all comms, that is enqueued but that its device has not
	 * reached, and the comm of that op. NULL = no such op is known.
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
 * Returns the number of GATE_INIT gates if all ranks of the job wait, directly or behind others,
 * for communicators that can no longer be made. 0 = that is not so, or there is only one such gate.
 *
 * We mostly do not know a communicator's members before it is made. But a rank that waits in one
 * such call, or in another call that some member has not entered, enters no other call. So no rank
 * is left that could come. A rank with one thread per call still could.
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
 * Returns the other half of a send or receive of member `me`; NULL = the peer's known ops do not
 * include it. *ret_peer is the peer's comm rank.
 */
const struct cw_op *waitgraph_counterpart(const struct cw_snap_comm *c, uint32_t me,
					  const struct cw_op *op, uint32_t *ret_peer);

/* True if two ops of one member are the same op or of one group, so that they complete together. */
bool waitgraph_same_launch(const struct cw_op *a, const struct cw_op *b);

/* The nodes upstream of some starting nodes: all that wait for these, directly or indirectly. */
struct upstream {
	uint32_t *order;  /* nodes in the order of the search, nearest first */
	uint32_t n_order; /* the starting nodes come first */
	uint32_t *next;   /* per node: the node it waits for, towards the start; CW_SNAP_NONE */
	uint32_t *hops;   /* per node: distance from the start; CW_SNAP_NONE = not upstream */
};

/* Allocates the arrays in `a`; they serve many searches. Returns 0 or -ENOMEM. */
int upstream_init(const struct waitgraph *g, struct cw_arena *a, struct upstream *ret);

/*
 * Searches from n nodes. O(nodes found and their edges), because it resets only the nodes of the
 * last search.
 */
void upstream_search(const struct waitgraph *g, const uint32_t *nodes, uint32_t n,
		     struct upstream *u);
