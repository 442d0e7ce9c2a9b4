/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usual order of two calls. We need it if a deadlock has equally many ranks with each order.
 * Then the other ranks of the job tell: they are in groups of the same kind (communicators split
 * from one parent by one call), and most of them have made one call before the other.
 *
 * Pure, O(members of the comms concerned).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/engine_context.h"

enum call_order {
	CALL_ORDER_UNKNOWN = 0,
	CALL_ORDER_A, /* the first gate's call came first */
	CALL_ORDER_B,
};

struct call_order_vote {
	enum call_order *of; /* per rank */
	bool *is_member;     /* per rank: it is a member of one of the two comms themselves */
	bool *is_unseen;     /* per rank: it is a member of both, and we do not know its order */
	uint32_t n[3];       /* number of ranks by enum call_order; UNKNOWN is not counted */
	uint32_t unseen;     /* number of ranks in is_unseen */
};

/*
 * Finds in which order ranks made two gates' calls. We ask the ranks of these two comms and of the
 * other groups of the same splits. Only the times of the calls count: a rank that is done with a
 * call may have left it before others entered. The arrays are in the arena of the engine context.
 * Returns 0 or -ENOMEM.
 */
int call_order_ask(struct engine_context *s, uint32_t a, uint32_t b, struct call_order_vote *ret);

/* True if the cycle contains rooted calls, which members leave one by one. */
bool call_order_is_rooted(const struct engine_context *s, uint32_t component);

/*
 * Returns, per rank, whether it had the choice of order that went wrong in this cycle: all ranks of
 * the cycle, and the ranks that are members of every comm of the cycle. Ranks outside of the cycle
 * show the usual order by the gates at which they wait. They exist because a root waits for fewer
 * ranks than wait for it. The array is in the arena of the engine context; NULL = out of memory.
 */
bool *call_order_electors(struct engine_context *s, uint32_t component);

/*
 * True if every send and receive of the cycle has its other half, which comes after the call in
 * which the peer waits. A missing half may never come. Then the peer left it out, or a rank made a
 * call too many, and the cycle follows from that.
 */
bool call_order_is_posted(const struct engine_context *s, uint32_t component);

/*
 * Lists the ranks without which no rank of the cycle would wait: all others wait for such a rank,
 * or for each other because of it. A star has one, and in a ring every rank is one. The other ranks
 * of a cycle only stand between. A large cycle gets none. The array is in the arena of the engine
 * context. Returns 0 or -ENOMEM.
 */
int call_order_pivots(struct engine_context *s, uint32_t component, uint32_t **ret,
		      uint32_t *ret_n);
