/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver of this process, with the functions that the agent calls. The agent never loads
 * the driver, because a process that uses NCCL has loaded it already. Every call happens in a
 * thread of the application, inside one of the thread's own calls into NCCL.
 */
#pragma once

#include <stdbool.h>

#include "agent/base/cuda_abi.h"

/*
 * The driver's functions. A member is NULL if the driver lacks a function that we do not require.
 */
struct cw_cuda {
#define X(member, name, required, params) CUresult(*member) params;
	CW_CUDA_FUNCTIONS(X)
#undef X
};

extern struct cw_cuda cw_cuda;

/*
 * Returns whether the driver has all the functions that we require. We search for them once. This
 * search takes the loader's lock.
 */
bool cw_cuda_ready(void);

/*
 * Returns the context to use for a device: the current context if it is on that device, else the
 * device's primary context. With ordinal -1 returns the current context. NULL = none.
 */
CUcontext cw_cuda_context_of(int ordinal);

/*
 * Stores the device's model name in the record, unless the record has it already. Call this
 * function only after cw_cuda_ready() returned true, in a thread that may call the driver.
 */
void cw_cuda_note_model(int ordinal);

/*
 * Makes ctx the current context, unless it is current already. Returns false if the driver refuses.
 * cw_cuda_pop() takes *ret_pushed and undoes the change.
 */
bool cw_cuda_push(CUcontext ctx, bool *ret_pushed);
void cw_cuda_pop(bool pushed);
