/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for whom.
 *
 * A rank does not wait for a rank, it waits in a call until certain members of the comm have come.
 * The graph says it that way: ranks wait at *gates*, and a gate is held shut by the members that
 * are missing at it. That keeps the graph as small as the comms (4,096 ranks that wait for one are
 * one gate, not 4,096 edges) and lets the gates of one comm share their lists: whoever is missing
 * at coll_seq 7 is missing at 8 too, so the gate of 8 lists only the newcomers and refers to the
 * lower gate for the rest.
 *
 *	rank ──waits at──► gate ──held shut by──► missing rank ──waits at──► gate …
 *
 * Waiting is of the "and" kind: all that are missing must come. So a cycle is a deadlock whatever
 * else hangs on it, and the ends of the paths are the reasons: a missing rank that waits nowhere,
 * or a gate at which nobody is missing and which does not open all the same.
 *
 * Pure; one graph per snapshot, allocated in the caller's arena; O(members + ops of windows).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"

enum gate_kind {
	GATE_COLLECTIVE, /* for all members of the comm */
	GATE_ROOT,       /* for the root alone: nothing comes, or goes, without it */
	GATE_P2P,        /* for the counterparts of sends and receives */
	GATE_HOST,       /* in a host-blocking call (split, finalize, …), for all members */
	GATE_INIT,       /* in the making of the comm, for all members */
};

struct gate {
	uint32_t comm;
	enum gate_kind kind;
	uint64_t seq;      /* coll_seq of a collective, p2p_seq, else 0 */
	uint32_t op_kind;  /* enum cw_op_kind of the call */
	uint32_t n_unseen; /* members that are not visible: they may be missing */
	uint32_t n_again;  /* those of them that left this making, and are in another one */
	int32_t *unseen; /* their labels, where members are numbered like the job; NULL = unknown */
	uint32_t *waiters; /* rank indices */
	uint32_t n_waiters;
	uint32_t *missing; /* rank indices; those of `lower` are missing here too */
	uint32_t n_missing;
	uint32_t n_missing_all; /* with those of the lower gates */
	uint32_t lower, upper;  /* neighbouring gates of the same comm, or CW_SNAP_NONE */
	uint32_t n_soft;        /* waiters whose device progress is not known */
	uint32_t n_unobserved;  /* members of its comm that may be inside an op unseen */
	int64_t since_ns;       /* enter time of its oldest waiter; 0 = unknown */
	uint32_t oldest;        /* that waiter's rank index */
	const struct cw_op *op; /* and its op; NULL where the record does not hold it */
};

struct waitgraph {
	uint32_t n_ranks, n_gates, cap_gates;
	struct gate *gates;
	/* Gates rank r waits at: waits[wait_start[r]] … waits[wait_start[r + 1] - 1]. */
	uint32_t *wait_start, *waits;
	/* Gates that list rank r as missing (not repeated for the gates above them). */
	uint32_t *miss_start, *misses;
	/* Per node, ranks first, then gates: its strongly connected component. */
	uint32_t *component;
	uint32_t n_components;
	uint32_t *ranks_in; /* per component: how many ranks */
	/*
	 * Per rank: the comm in which it may be inside an op that got no progress writes and that
	 * nobody is known to have completed; CW_SNAP_NONE = in none.
	 */
	uint32_t *unobserved;
	/*
	 * Per rank: its oldest op, of all comms, that is enqueued and that its device has not come
	 * to, and the comm; NULL = none is known.
	 */
	const struct cw_op **behind;
	uint32_t *behind_comm;
};

/* The graph's nodes are numbered ranks first. */
static inline uint32_t waitgraph_gate_node(const struct waitgraph *g, uint32_t gate)
{
	return g->n_ranks + gate;
}

static inline bool waitgraph_waits(const struct waitgraph *g, uint32_t rank)
{
	return g->wait_start[rank + 1] > g->wait_start[rank];
}

static inline bool waitgraph_is_missing(const struct waitgraph *g, uint32_t rank)
{
	return g->miss_start[rank + 1] > g->miss_start[rank];
}

/* Builds the graph in `a`. Returns 0 or -ENOMEM. */
int cw_waitgraph_build(const struct cw_snapshot *snap, struct cw_arena *a, struct waitgraph *ret);

/*
 * In how many makings of communicators, or for somebody behind them, all ranks of the job wait, to
 * none of which all have come; 0 = that is not so, or there is but one. Who is to come is mostly
 * not known of a communicator before it is made; but a rank that waits in one making, or in a call
 * that not all have come to, comes to no other, so that nobody is left who could come to any. (A
 * rank with a thread for each could.)
 */
uint32_t waitgraph_crossed_makings(const struct cw_snapshot *snap, const struct waitgraph *g);

/* The rank waits in the making of a communicator. */
static inline bool waitgraph_is_making(const struct waitgraph *g, uint32_t rank)
{
	for (uint32_t i = g->wait_start[rank]; i < g->wait_start[rank + 1]; i++)
		if (g->gates[g->waits[i]].kind == GATE_INIT)
			return true;
	return false;
}

/* The i-th node that `node` waits for; CW_SNAP_NONE past the last. */
uint32_t waitgraph_successor(const struct waitgraph *g, uint32_t node, uint32_t i);

/*
 * The other half of a send or receive of member `me`, where the ops at hand include it; NULL if
 * not. *ret_peer is the peer's comm rank.
 */
const struct cw_op *waitgraph_counterpart(const struct cw_snap_comm *c, uint32_t me,
					  const struct cw_op *op, uint32_t *ret_peer);

/* Two ops of one member that are one op, or of one group: they complete together. */
bool waitgraph_same_launch(const struct cw_op *a, const struct cw_op *b);

/* What lies upstream of some nodes: everybody who waits for them, directly or not. */
struct upstream {
	uint32_t *order;  /* nodes in the order they were found, nearest first */
	uint32_t n_order; /* the starting nodes come first */
	uint32_t *next;   /* per node: the node it waits for, towards the start; CW_SNAP_NONE */
	uint32_t *hops;   /* per node: distance; CW_SNAP_NONE = not upstream */
};

/* Makes the arrays, in `a`; they can be used for many searches. Returns 0 or -ENOMEM. */
int upstream_init(const struct waitgraph *g, struct cw_arena *a, struct upstream *ret);

/* Searches from n nodes; O(nodes found and their edges): the arrays are cleaned up piecemeal. */
void upstream_search(const struct waitgraph *g, const uint32_t *nodes, uint32_t n,
		     struct upstream *u);
