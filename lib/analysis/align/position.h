/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where one member of a comm stands, as far as can be seen: how far it has brought its part of the
 * comm's collectives, and whether it waits in a call. The one place that reads the counters of a
 * member; everything after it reasons about positions.
 *
 * Pure, O(1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"

enum {
	POS_SEEN = 1 << 0,    /* its counters are visible */
	POS_DEAD = 1 << 1,    /* its process has ended: it will bring nothing more */
	POS_LEFT = 1 << 2,    /* it destroyed or aborted the comm */
	POS_STALE = 1 << 3,   /* its node does not report: this is how it stood */
	POS_WAITS = 1 << 4,   /* inside `op`, which has not completed */
	POS_GUESSED = 1 << 5, /* that is so only if somebody else is missing in `op` */
	POS_SOFT = 1 << 6,    /* seen on the host only: the device may be further or less far */
	POS_BEHIND = 1 << 7,  /* `op` is enqueued, its stream has not got to it */
	POS_INIT = 1 << 8,    /* the comm is still being made */
	/* Its newest ops, or those before `op`, got no progress writes: it may be inside one. */
	POS_UNOBSERVED = 1 << 9,
	/* It left the comm before the comm was made: the call failed, or it gave the call up. */
	POS_UNMADE = 1 << 10,
};

struct position {
	/* It has done, or is doing, its part of every collective up to this coll_seq. */
	uint64_t arrived;
	const struct cw_op *op; /* with POS_WAITS or POS_BEHIND; may be NULL with POS_INIT */
	uint32_t flags;         /* POS_* */
};

struct position position_of(const struct cw_snapshot *snap, const struct cw_snap_member *m);

/* 0 is ncclSuccess, 7 ncclInProgress: anything else launched nothing. */
static inline bool position_has_failed(const struct cw_op *op)
{
	return (op->flags & CW_OPF_RETURNED) && op->result != 0 && op->result != 7;
}

/* The op was or will be launched, takes part in its comm's order and is not a graph's template. */
static inline bool position_op_counts(const struct cw_op *op)
{
	if (op->flags & (CW_OPF_QUEUED | CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_NO_COUNT))
		return false;
	return !position_has_failed(op);
}

/*
 * A replay of a CUDA graph stands for its collectives: its launch has the coll_seq of the oldest of
 * them that has not completed, and no signature, for which of the graph's ops that is nobody knows.
 * All members must come, as to any collective.
 */
static inline bool position_is_replay(const struct cw_op *op)
{
	return op->kind == CW_OP_GRAPH_LAUNCH && op->coll_seq && position_op_counts(op);
}

/*
 * The member's record has lost the call and still has its coll_seq. All members must come, as to
 * any collective.
 */
static inline bool position_is_lost(const struct cw_op *op)
{
	return op->kind == CW_OP_NONE && op->coll_seq && position_op_counts(op);
}

/* A collective that has a place in its comm's order: what signatures are compared by. */
static inline bool position_is_step(const struct cw_op *op)
{
	return cw_op_is_collective(op->kind) && op->coll_seq && position_op_counts(op);
}
