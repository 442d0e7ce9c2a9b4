/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor summaries (docs/design/summaries.md): before an op a kernel on the caller's stream adds up
 * what the rank feeds in, after it what came out, and writes that into the flight record. Nothing
 * waits for it, and no dependency between streams is added.
 *
 * COLLWATCH_SUMMARY: off (default), sampled (within a budget: agent/cuda/summary_budget.h) or full.
 * Never under stream capture: a replay would write one and the same summary again and again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/op_call.h"

extern bool cw_summary_is_on;

/* COLLWATCH_SUMMARY=full: of each op, as long as there is a place. */
bool cw_summary_takes_all(void);

/* How many places in the ring may be given to launches now; all, where another thread has it. */
uint32_t cw_summary_places(void);

/* A communicator is ready in this context, which is current. May load kernels; calls CUDA. */
void cw_summary_comm_ready(void *context, uint64_t pages);

/*
 * Looks at what the op reads, or, is_output, has written: it, or the group it is in, has been
 * launched. Between cw_enter() and cw_leave(), in the thread that issues the op. Keeps errno.
 * Return: entry of the summary + 1, 0 = none.
 */
uint32_t cw_summary_take(const struct cw_op_call *call, const struct cw_op_desc *desc,
			 bool is_output);
