/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summaries of a group's tensors (docs/design/summaries.md#groups). NCCL puts nothing of a group on
 * a stream before the outermost end returns. So we summarise the inputs right before that end and
 * the outputs right after it; until then these lists hold the tensors.
 *
 * The lists are bounded, and we allocate nothing. Each group belongs to one thread. If summaries
 * are off, no code touches the lists.
 */
#pragma once

#include <stdint.h>

#include "agent/record/op_call.h"
#include "agent/record/record.h"

/* The limit for inputs, and for outputs: both together fill the record's ring. */
#define CW_GROUP_SAMPLES (CW_REC_SUMMARY_RING / 2)

struct cw_group_sample {
	struct cw_op_desc desc;
	uint64_t op_index, seq;
	uint64_t draw; /* random; for a collective the same on all members, for input and output */
	uint32_t comm, comm_generation;
};

/*
 * The tensors on one side of a group: its inputs, or its outputs. If there are more tensors than
 * places, we keep the tensors with the lowest draws.
 */
struct cw_group_side {
	uint32_t n; /* all tensors, kept or not */
	struct cw_group_sample kept[CW_GROUP_SAMPLES];
	uint8_t by_draw[CW_GROUP_SAMPLES]; /* indexes into kept, lowest draw first */
};

/* A zeroed struct is empty. */
struct cw_group_samples {
	struct cw_group_side in, out;
	uint32_t is_spoiled;
};

/* Adds the input and output of an op that NCCL has queued. */
void cw_group_samples_add(struct cw_group_samples *samples, const struct cw_op_call *call);

/*
 * Call this when NCCL has refused an op, because it will refuse the whole group. The program may
 * free streams and buffers of the other ops before it ends the group, so we summarise no inputs.
 */
void cw_group_samples_spoil(struct cw_group_samples *samples);

/*
 * Call this right before the outermost end. Like cw_group_samples_take_outputs(), it calls CUDA, in
 * the thread that ends the group and inside that call. Both count the tensors that they leave out,
 * and may change errno.
 */
void cw_group_samples_take_inputs(struct cw_group_samples *samples);

/* Call this after the launch. The "completed" words of the group must come before on the stream. */
void cw_group_samples_take_outputs(struct cw_group_samples *samples);

/* Empties the lists. Call this when the group ends. */
void cw_group_samples_forget(struct cw_group_samples *samples);
