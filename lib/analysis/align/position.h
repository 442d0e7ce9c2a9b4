/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position of one member of a comm, as far as we can see it: how far it has come in the comm's
 * collectives, and whether it waits in a call. Only position.c derives this from the counters of a
 * member. All later steps use positions.
 *
 * Pure, O(1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"

enum {
	POS_SEEN = 1 << 0,    /* the member's counters are visible */
	POS_DEAD = 1 << 1,    /* the process has ended, and the member does nothing more */
	POS_LEFT = 1 << 2,    /* the member destroyed or aborted the comm */
	POS_STALE = 1 << 3,   /* the node does not report, and the position is the last known one */
	POS_WAITS = 1 << 4,   /* the member is inside `op`, which has not completed */
	POS_GUESSED = 1 << 5, /* the member waits only if another member is missing in `op` */
	POS_SOFT = 1 << 6,    /* seen on the host only; the device may be ahead or behind */
	POS_BEHIND = 1 << 7,  /* `op` is enqueued, but its stream has not reached it */
	POS_INIT = 1 << 8,    /* the comm is still being made */
	/*
	 * The newest ops, or the ops before `op`, got no progress writes. The member may be inside
	 * one of these ops.
	 */
	POS_UNOBSERVED = 1 << 9,
	/*
	 * The member left before the comm existed: the call that makes the comm failed, or the
	 * member gave it up.
	 */
	POS_UNMADE = 1 << 10,
};

struct position {
	/* The member has done, or is doing, its part of every collective up to this coll_seq. */
	uint64_t arrived;
	const struct cw_op *op; /* set with POS_WAITS or POS_BEHIND; may be NULL with POS_INIT */
	uint32_t flags;         /* bits of POS_* */
};

struct position position_of(const struct cw_snapshot *snap, const struct cw_snap_member *m);

/* True if the call failed and so launched nothing. 0 is ncclSuccess and 7 is ncclInProgress. */
static inline bool position_has_failed(const struct cw_op *op)
{
	return (op->flags & CW_OPF_RETURNED) && op->result != 0 && op->result != 7;
}

/*
 * True if the op takes part in its comm's order and was, or will be, launched. Calls of a graph's
 * template are not launched.
 */
static inline bool position_op_counts(const struct cw_op *op)
{
	if (op->flags & (CW_OPF_QUEUED | CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_NO_COUNT))
		return false;
	return !position_has_failed(op);
}

/*
 * True if the op is a replay of a CUDA graph. The replay stands for the collectives of the graph.
 * Its coll_seq is that of the oldest collective that has not completed. It has no signature,
 * because we do not know which collective of the graph this is. All members must enter a replay,
 * like any collective.
 */
static inline bool position_is_replay(const struct cw_op *op)
{
	return op->kind == CW_OP_GRAPH_LAUNCH && op->coll_seq && position_op_counts(op);
}

/*
 * True if the member's record has lost the call but still has its coll_seq. All members must enter
 * such a call, like any collective.
 */
static inline bool position_is_lost(const struct cw_op *op)
{
	return op->kind == CW_OP_NONE && op->coll_seq && position_op_counts(op);
}

/*
 * True for a collective that has a number in its comm's order. We compare the signatures of these
 * ops only.
 */
static inline bool position_is_step(const struct cw_op *op)
{
	return cw_op_is_collective(op->kind) && op->coll_seq && position_op_counts(op);
}
