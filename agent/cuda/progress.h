/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device progress: the GPU itself writes, in stream order, how far a stream has come on a
 * communicator (docs/design/progress.md). Before an op its number goes to the slot's "reached"
 * word, after it to "completed", with cuStreamWriteValue32 on the caller's stream, from the
 * caller's thread. Nothing here waits, polls or synchronises, and no thread of the agent ever calls
 * CUDA.
 *
 * Of a busy stream some ops get no writes if the user wants it so (agent/cuda/progress_budget.h).
 *
 * Whatever cannot be done (no driver, slots used up, a stream being captured, an error) leaves the
 * op's completion unknown; it is never wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"

/*
 * A communicator became ready: finds the driver's functions, which are in the process by now, makes
 * sure that the progress pages are registered and notes the communicator's context: its device's,
 * or the current one where that is not known. Calls CUDA.
 */
void cw_progress_comm_ready(int c);

/* The entry is about to be used for another communicator. Under the registry's lock. */
void cw_progress_comm_forget(int c);

struct cw_progress_at {
	uint16_t slot; /* CW_REC_NO_SLOT = unknown */
	bool is_captured;
};

/*
 * The slot of (comm, stream) for the op with number op_index. Lock-free but for the first op of a
 * stream.
 */
struct cw_progress_at cw_progress_at(int c, cudaStream_t stream, uint64_t op_index);

/* A slot for a CUDA graph: both words are 0, and count ops of the graph. Or CW_REC_NO_SLOT. */
uint16_t cw_progress_take(int c);
void cw_progress_give_back(uint16_t slot);

/*
 * Enqueues "reached" or "completed" = op_index. Keeps errno. Return: false when the driver refused;
 * the communicator then gets no further writes and the op's completion is unknown.
 */
bool cw_progress_reached(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index);
bool cw_progress_completed(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index);
