/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor summaries (docs/design/summaries.md). A kernel on the caller's stream summarises the
 * rank's input before an op, and another kernel summarises the output after it. Both write to the
 * flight record. No call waits for the kernels, and we add no dependency between streams.
 *
 * COLLWATCH_SUMMARY: off (default), sampled (within a budget: agent/cuda/summary_budget.h) or full.
 * We never summarise under stream capture, because each replay would write the same summary again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/op_call.h"

extern bool cw_summary_is_on;

/*
 * Returns whether COLLWATCH_SUMMARY=full. We then summarise each op, as long as the ring has a free
 * place.
 */
bool cw_summary_takes_all(void);

/*
 * Returns the number of free entries of the ring that launches may take now. If another thread is
 * taking an entry, returns the number of all entries instead of waiting.
 */
uint32_t cw_summary_places(void);

/*
 * Prepares the summaries of a communicator that became ready. `context` is the communicator's
 * context and must be current. May load kernels; calls CUDA.
 */
void cw_summary_comm_ready(void *context, uint64_t pages);

/*
 * Summarises the op's input, or with is_output its output. For the output, the caller must have
 * launched the op or its group. Call this function between cw_enter() and cw_leave(), in the thread
 * that issues the op. Keeps errno. Returns the entry of the summary + 1; 0 = none.
 */
uint32_t cw_summary_take(const struct cw_op_call *call, const struct cw_op_desc *desc,
			 bool is_output);
