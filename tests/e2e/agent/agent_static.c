/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that brings its own NCCL along, linked statically and exported, as PyTorch's does. Its
 * calls go through its PLT, so a preloaded wrapper gets them.
 */
#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>

#define COUNT 64
#define ASKERS 16

int static_rank(int reduces);
int static_asked_at_once(void);

static pthread_barrier_t all_there;

static void *ask(void *wrong)
{
	int version = 0;

	(void)pthread_barrier_wait(&all_there);
	if (ncclGetVersion(&version) != ncclSuccess || version == 0)
		(void)__atomic_fetch_add((int *)wrong, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* The first calls of a process, by several threads; how many were not answered. */
int static_asked_at_once(void)
{
	pthread_t threads[ASKERS];
	int wrong = 0;

	if (pthread_barrier_init(&all_there, NULL, ASKERS) != 0)
		return -1;
	for (int i = 0; i < ASKERS; i++) {
		if (pthread_create(&threads[i], NULL, ask, &wrong) != 0)
			return -1;
	}
	for (int i = 0; i < ASKERS; i++)
		(void)pthread_join(threads[i], NULL);
	return wrong;
}

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
