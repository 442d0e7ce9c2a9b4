/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device progress: the GPU itself writes, in stream order, how far a stream has come on a
 * communicator (docs/design/agent.md#progress-words). Before an op the stream writes the op's
 * number to the slot's "reached" word, and after the op to the "completed" word. We use
 * cuStreamWriteValue32 on the caller's stream, from the caller's thread. No code here waits, polls
 * or synchronises, and no thread of the agent ever calls CUDA.
 *
 * If the user asks for it, some ops of a busy stream get no writes (agent/cuda/progress_budget.h).
 * Sometimes we cannot write: no driver, all slots in use, a stream in a capture, an error. The op's
 * completion is then unknown, but never wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"

/*
 * Sets up progress for a communicator that became ready. Finds the driver's functions, which are in
 * the process by now, and registers the progress pages unless they are registered. Stores the
 * context of the communicator's device, or the current context if we do not know the device. Calls
 * CUDA.
 */
void cw_progress_comm_ready(int c);

/*
 * Frees the slots of entry c before another communicator uses the entry. The caller holds the
 * registry's lock.
 */
void cw_progress_comm_forget(int c);

struct cw_progress_at {
	uint16_t slot; /* CW_REC_NO_SLOT = progress unknown */
	bool is_captured;
};

/*
 * Finds the slot of (comm, stream) for the op with number op_index. Lock-free, except for the first
 * op of a stream.
 */
struct cw_progress_at cw_progress_at(int c, cudaStream_t stream, uint64_t op_index);

/*
 * Takes a slot for a CUDA graph. Both words begin at 0 and count the ops of the graph. Returns
 * CW_REC_NO_SLOT if no slot is free.
 */
uint16_t cw_progress_take(int c);
void cw_progress_give_back(uint16_t slot);

/*
 * Make the stream write op_index to the slot's "reached" or "completed" word. Keep errno. Return
 * false if the driver refuses. The communicator then gets no further writes, and the op's
 * completion is unknown.
 */
bool cw_progress_reached(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index);
bool cw_progress_completed(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index);
