/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which order of two calls is the usual one? Asked where a deadlock's own ranks are equally many on
 * both sides. The other ranks of the job tell: they are in groups of the same kind (communicators
 * split from one parent by one call) and most have done one call before the other.
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
	bool *is_member;     /* per rank: of one of the two comms themselves */
	bool *is_unseen;     /* per rank: of both, and its order is not known */
	uint32_t n[3];       /* ranks by enum call_order */
	uint32_t unseen;     /* how many of them */
};

/*
 * In which order ranks made two gates' calls: the ranks of these two comms, and of those that are
 * their counterparts elsewhere. By the times of the calls, never by how far a rank has come:
 * whoever has done with a call may have left it before others entered. In the arena of the engine
 * context. 0 or -ENOMEM.
 */
int call_order_ask(struct engine_context *s, uint32_t a, uint32_t b, struct call_order_vote *ret);

/* Calls of which members get out one by one are in the cycle. */
bool call_order_is_rooted(const struct engine_context *s, uint32_t component);

/*
 * Per rank: had it the choice of order that went wrong in this cycle? All ranks of the cycle, and
 * all members of every comm of it. Those outside the cycle (a root waits for fewer than wait for
 * it) show by where they wait which order is the usual one. In the arena of the engine context;
 * NULL = -ENOMEM.
 */
bool *call_order_electors(struct engine_context *s, uint32_t component);

/*
 * Every send and receive of the cycle has been met by its other half, which stands behind the call
 * the peer waits in. Where one has not, it may never be: then the peer left it out, or somebody
 * made a call too many, and the cycle follows from that.
 */
bool call_order_is_posted(const struct engine_context *s, uint32_t component);

/*
 * The ranks without any one of which nobody in the cycle would wait: all the others wait for it, or
 * for each other because of it. One in a star, everybody in a ring; others only stand in between.
 * None is found where the cycle is large. In the arena of the engine context. Returns 0 or -ENOMEM.
 */
int call_order_pivots(struct engine_context *s, uint32_t component, uint32_t **ret,
		      uint32_t *ret_n);
