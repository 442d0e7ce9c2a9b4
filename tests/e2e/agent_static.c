/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that brings its own NCCL along, linked statically and exported, as PyTorch's does. Its
 * calls go through its PLT, so a preloaded wrapper gets them.
 */
#include <cuda.h>
#include <nccl.h>
#include <stdint.h>

#define COUNT 64

int static_rank(int reduces);

/* A job of one rank; 0 when everything succeeded. */
int static_rank(int reduces)
{
	CUcontext context = NULL;
	CUdeviceptr buffer = 0;
	CUdevice device = 0;
	CUstream stream = NULL;
	ncclUniqueId id;
	ncclComm_t comm = NULL;
	int bad = 0;

	bad |= cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS;
	bad |= cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS;
	bad |= cuCtxSetCurrent(context) != CUDA_SUCCESS;
	bad |= cuStreamCreate(&stream, 1) != CUDA_SUCCESS;
	bad |= cuMemAlloc(&buffer, COUNT * sizeof(float)) != CUDA_SUCCESS;
	bad |= ncclGetUniqueId(&id) != ncclSuccess;
	bad |= ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess;
	for (int i = 0; i < reduces && !bad; i++)
		bad |= ncclAllReduce((void *)(uintptr_t)buffer, (void *)(uintptr_t)buffer, COUNT,
				     ncclFloat, ncclSum, comm, stream) != ncclSuccess;
	bad |= cuStreamSynchronize(stream) != CUDA_SUCCESS;
	return bad;
}
