/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group's tensors, where they are summarised (docs/design/summaries.md#groups). Nothing of a
 * group is on a stream before its outermost end has returned: what goes in is looked at right
 * before that, what comes out right behind it, and until then it is kept here what to look at.
 *
 * Bounded, without allocation; one group is one thread's. Untouched where summaries are off.
 */
#pragma once

#include <stdint.h>

#include "agent/record/op_call.h"
#include "agent/record/record.h"

/* Inputs, and outputs: all of them together have the record's ring. */
#define CW_GROUP_LOOKS (CW_REC_SUMMARY_RING / 2)

struct cw_group_look {
	struct cw_op_desc desc;
	uint64_t op_index, seq;
	uint64_t draw; /* of a collective the same on all its members, and of both its sides */
	uint32_t comm, comm_generation;
};

/* Of more tensors than there are places, those of the lowest draws are kept. */
struct cw_group_side {
	uint32_t n; /* tensors, also those that are not kept */
	struct cw_group_look kept[CW_GROUP_LOOKS];
	uint8_t by_draw[CW_GROUP_LOOKS]; /* places in kept, the lowest draw first */
};

/* Zeroed is empty. */
struct cw_group_looks {
	struct cw_group_side in, out;
	uint32_t is_spoiled;
};

/* NCCL has queued the op. */
void cw_group_looks_add(struct cw_group_looks *looks, const struct cw_op_call *call);

/*
 * NCCL has refused an op, and will refuse the group: the program may have given up streams and
 * buffers of its others before it ends it. What goes in is not looked at.
 */
void cw_group_looks_spoil(struct cw_group_looks *looks);

/*
 * The outermost end is about to be called. Like the next one: calls CUDA, in the thread that ends
 * the group, inside of that call; counts what it leaves out. Errno may change.
 */
void cw_group_looks_at_inputs(struct cw_group_looks *looks);

/* The group was launched and its "completed" words are enqueued. */
void cw_group_looks_at_outputs(struct cw_group_looks *looks);

/* The group is over. */
void cw_group_looks_forget(struct cw_group_looks *looks);
