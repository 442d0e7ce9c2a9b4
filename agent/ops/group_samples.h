/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summaries of a group's tensors (docs/design/summaries.md#groups). NCCL puts no op of a group on a
 * stream before the outermost end returns. We therefore summarise the inputs right before that end
 * and the outputs right after it. Until then the lists in this file hold the tensors.
 *
 * The lists have a fixed size, and we allocate nothing. Each group belongs to one thread. If
 * summaries are off, no code touches the lists.
 */
#pragma once

#include <stdint.h>

#include "agent/record/op_call.h"
#include "agent/record/record.h"

/* Limit of the inputs, and limit of the outputs. Both together fill the record's ring. */
#define CW_GROUP_SAMPLES (CW_REC_SUMMARY_RING / 2)

struct cw_group_sample {
	struct cw_op_desc desc;
	uint64_t op_index, seq;
	uint64_t draw; /* random; for a collective equal on all members, and for input and output */
	uint32_t comm, comm_generation;
};

/*
 * All inputs of a group, or all outputs. If there are more tensors than free entries of the ring,
 * we keep the tensors with the lowest draws.
 */
struct cw_group_side {
	uint32_t n; /* number of tensors, kept or not */
	struct cw_group_sample kept[CW_GROUP_SAMPLES];
	uint8_t by_draw[CW_GROUP_SAMPLES]; /* indexes into kept, lowest draw first */
};

/* The inputs and outputs of a group. A zeroed struct is empty. */
struct cw_group_samples {
	struct cw_group_side in, out;
	uint32_t is_spoiled;
};

/* Adds the input and output of an op that NCCL has queued. */
void cw_group_samples_add(struct cw_group_samples *samples, const struct cw_op_call *call);

/*
 * Notes that NCCL has refused an op, and will therefore refuse the whole group. The program may
 * free streams and buffers of the other ops before it ends the group, so we summarise no inputs.
 */
void cw_group_samples_spoil(struct cw_group_samples *samples);

/*
 * Summarises the inputs. Call this function right before the outermost end. Like
 * cw_group_samples_take_outputs(), it calls CUDA, in the thread that ends the group and inside that
 * thread's call. Both functions count the tensors that they omit, and may change errno.
 */
void cw_group_samples_take_inputs(struct cw_group_samples *samples);

/*
 * Summarises the outputs. Call this function after the launch, when the "completed" writes of the
 * group are on the stream.
 */
void cw_group_samples_take_outputs(struct cw_group_samples *samples);

/* Empties the lists. Call this function when the group ends. */
void cw_group_samples_forget(struct cw_group_samples *samples);
