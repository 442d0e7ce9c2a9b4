/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver of this process, as far as the agent calls it. Never loaded by the agent: a
 * process that uses NCCL has it. Every call happens in a thread of the application that is inside
 * one of its own calls into NCCL.
 */
#pragma once

#include <stdbool.h>

#include "agent/base/cuda_abi.h"

/* NULL where the driver lacks a function that is not required. */
struct cw_cuda {
#define X(member, name, required, params) CUresult(*member) params;
	CW_CUDA_FUNCTIONS(X)
#undef X
};

extern struct cw_cuda cw_cuda;

/* True when the driver is there with all that is required; looks once. Takes the loader's lock. */
bool cw_cuda_ready(void);

/*
 * The context to use for a device: the current one when it is on that device, else the device's
 * primary one. ordinal -1: the current one. NULL = none.
 */
CUcontext cw_cuda_context_of(int ordinal);

/*
 * Notes in the record what device that is, unless it is known. Only where cw_cuda_ready(), in a
 * thread that may call the driver.
 */
void cw_cuda_note_model(int ordinal);

/* Makes ctx current if it is not. False: the driver refused. */
bool cw_cuda_push(CUcontext ctx, bool *ret_pushed);
void cw_cuda_pop(bool pushed);
