/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver of this process, with the functions that the agent calls. The agent never loads
 * the driver: a process that uses NCCL has it. Every call happens in a thread of the application,
 * inside one of the thread's own calls into NCCL.
 */
#pragma once

#include <stdbool.h>

#include "agent/base/cuda_abi.h"

/* A member is NULL if the driver lacks a function that we do not require. */
struct cw_cuda {
#define X(member, name, required, params) CUresult(*member) params;
	CW_CUDA_FUNCTIONS(X)
#undef X
};

extern struct cw_cuda cw_cuda;

/*
 * True if the driver has all the functions that we require. We look for them once. The look-up
 * takes the loader's lock.
 */
bool cw_cuda_ready(void);

/*
 * Returns the context to use for a device. This is the current context if it is on that device,
 * else the device's primary context. With ordinal -1 it is the current context. NULL = none.
 */
CUcontext cw_cuda_context_of(int ordinal);

/*
 * Stores the device's model name in the record, unless the record has it. Call this only after
 * cw_cuda_ready() returned true, in a thread that may call the driver.
 */
void cw_cuda_note_model(int ordinal);

/* Makes ctx the current context, unless it is already. Returns false if the driver refuses. */
bool cw_cuda_push(CUcontext ctx, bool *ret_pushed);
void cw_cuda_pop(bool pushed);
