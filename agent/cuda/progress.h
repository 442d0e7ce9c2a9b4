/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device progress: the GPU itself writes, in stream order, how far a stream has come on a
 * communicator (docs/design/agent.md#progress-words). Before an op the stream writes the op's
 * number to the slot's "reached" word, and after the op to "completed". We use
 * cuStreamWriteValue32 on the caller's stream, from the caller's thread. No code here waits, polls
 * or synchronises, and no thread of the agent ever calls CUDA.
 *
 * If the user wants it so, some ops of a busy stream get no writes (agent/cuda/progress_budget.h).
 *
 * If we cannot write (no driver, slots used up, a stream in a capture, an error), the op's
 * completion stays unknown; it is never wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"

/*
 * Sets up progress for a communicator that became ready. Finds the driver's functions, which are in
 * the process by now, and makes sure that the progress pages are registered. Stores the
 * communicator's context: its device's, or the current one if we do not know the device.
 * Calls CUDA.
 */
void cw_progress_comm_ready(int c);

/* Call this before another communicator uses the entry, under the registry's lock. */
void cw_progress_comm_forget(int c);

struct cw_progress_at {
	uint16_t slot; /* CW_REC_NO_SLOT = unknown */
	bool is_captured;
};

/*
 * Finds the slot of (comm, stream) for the op with number op_index. Lock-free, except for the first
 * op of a stream.
 */
struct cw_progress_at cw_progress_at(int c, cudaStream_t stream, uint64_t op_index);

/*
 * Takes a slot for a CUDA graph: both words begin at 0, and count ops of the graph. CW_REC_NO_SLOT
 * = none is free.
 */
uint16_t cw_progress_take(int c);
void cw_progress_give_back(uint16_t slot);

/*
 * Enqueues "reached" or "completed" = op_index. Keeps errno. Returns false if the driver refuses;
 * the communicator then gets no further writes, and the op's completion is unknown.
 */
bool cw_progress_reached(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index);
bool cw_progress_completed(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index);
