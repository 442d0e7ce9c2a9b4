/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usual order of two calls. We need it if a deadlock has equally many ranks with each order.
 * Then other ranks of the job decide. They are in groups of the same kind (communicators that one
 * call split from one parent). Most of them have made one of the two calls before the other.
 *
 * Pure, O(members of the comms concerned).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/engine_context.h"

enum call_order {
	CALL_ORDER_UNKNOWN = 0,
	CALL_ORDER_A, /* the rank made the call of the first gate first */
	CALL_ORDER_B,
};

struct call_order_vote {
	enum call_order *of; /* per rank: the order in which it made the two calls */
	bool *is_member;     /* per rank: it is a member of one of the two comms */
	bool *is_unseen; /* per rank: it is a member of both comms, and its order is not known */
	uint32_t n[3];   /* number of ranks by enum call_order; CALL_ORDER_UNKNOWN is not counted */
	uint32_t unseen; /* number of ranks in is_unseen */
};

/*
 * Finds the order in which each rank made the calls of gates a and b. We compare the ranks of these
 * two comms and of the other groups from the same splits. Only the times of the calls count,
 * because a rank may have left a call before others entered it. The arrays are in the arena of the
 * engine context. Returns 0 or -ENOMEM.
 */
int call_order_ask(struct engine_context *s, uint32_t a, uint32_t b, struct call_order_vote *ret);

/* True if the cycle contains rooted calls. Members leave such a call one by one. */
bool call_order_is_rooted(const struct engine_context *s, uint32_t component);

/*
 * Returns the electors of a cycle: for each rank, whether it could choose between the orders of the
 * cycle's calls. Electors are all ranks of the cycle, and the ranks that are members of every comm
 * of the cycle. Some electors are outside of the cycle, because a root waits for fewer ranks than
 * wait for it. Their waits show the usual order. The array is in the arena of the engine context;
 * NULL = out of memory.
 */
bool *call_order_electors(struct engine_context *s, uint32_t component);

/*
 * True if every send and receive of the cycle has its other half, behind the call in which the peer
 * waits. A missing half may never come. Then the peer omitted it, or a rank made an extra call, and
 * the cycle is only a consequence.
 */
bool call_order_is_posted(const struct engine_context *s, uint32_t component);

/*
 * Lists the pivots: ranks without which no rank of the cycle would wait. All other ranks wait for a
 * pivot, or for each other because of a pivot. A star has one pivot, and in a ring every rank is
 * one. A cycle with too many ranks gets no pivots. The array is in the arena of the engine context.
 * Returns 0 or -ENOMEM.
 */
int call_order_pivots(struct engine_context *s, uint32_t component, uint32_t **ret,
		      uint32_t *ret_n);
