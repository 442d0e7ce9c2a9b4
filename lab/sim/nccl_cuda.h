/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver as the simulated NCCL sees it: public functions, which we look up at first use.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>
#include <nccl.h>

struct sim_cuda {
	CUresult (*init)(unsigned int);
	CUresult (*get_ctx)(CUcontext *);
	CUresult (*set_ctx)(CUcontext);
	CUresult (*push_ctx)(CUcontext);
	CUresult (*pop_ctx)(CUcontext *);
	CUresult (*get_device)(CUdevice *);
	CUresult (*device_count)(int *);
	CUresult (*retain_primary)(CUcontext *, CUdevice);
	CUresult (*launch_host_fn)(CUstream, CUhostFn, void *);
	CUresult (*event_create)(CUevent *, unsigned int);
	CUresult (*event_destroy)(CUevent);
	CUresult (*event_record)(CUevent, CUstream);
	CUresult (*wait_event)(CUstream, CUevent, unsigned int);
	CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
	CUresult (*mem_alloc)(CUdeviceptr *, size_t);
	CUresult (*mem_free)(CUdeviceptr);
	CUresult (*memcpy_dtoh)(void *, CUdeviceptr, size_t);
};

/* Returns the driver's functions. NULL = there is no driver; the error text is set. Any thread. */
const struct sim_cuda *sim_cuda(void);
/*
 * Returns the current context and its device. Without a current context, makes device 0's primary
 * context current.
 */
ncclResult_t sim_cuda_current(CUcontext *ret_ctx, int *ret_dev);
/* True if the stream is capturing, so that new items become part of a graph. */
bool sim_cuda_is_captured(CUstream stream);
