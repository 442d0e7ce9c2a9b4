/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: each thread has a current one, which belongs to the thread's current context. */
#include <pthread.h>
#include <string.h>

#include "lab/nccl/cudart/runtime.h"

/* The maximum of the simulated driver. */
#define DEVICES_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primaries[DEVICES_MAX]; /* retained once and never released, like NVIDIA's */

static CUresult use_primary(int device)
{
	CUcontext ctx;
	CUresult r = CUDA_SUCCESS;

	if (device < 0 || device >= DEVICES_MAX)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[device])
		r = rt_driver.p_cuDevicePrimaryCtxRetain(&primaries[device], device);
	ctx = primaries[device];
	pthread_mutex_unlock(&lock);
	return r == CUDA_SUCCESS ? rt_driver.p_cuCtxSetCurrent(ctx) : r;
}

CUresult rt_enter(void)
{
	CUcontext ctx = NULL;
	CUresult r = rt_open();

	if (r == CUDA_SUCCESS)
		r = rt_driver.p_cuCtxGetCurrent(&ctx);
	return r == CUDA_SUCCESS && !ctx ? use_primary(0) : r;
}

cudaError_t cudaSetDevice(int device)
{
	CUresult r = rt_open();

	return rt_result(r == CUDA_SUCCESS ? use_primary(device) : r);
}

cudaError_t cudaGetDevice(int *device)
{
	CUcontext ctx = NULL;
	CUresult r = rt_open();

	if (r == CUDA_SUCCESS)
		r = rt_driver.p_cuCtxGetCurrent(&ctx);
	if (r != CUDA_SUCCESS || !device)
		return rt_result(device ? r : CUDA_ERROR_INVALID_VALUE);
	*device = 0;
	return rt_result(ctx ? rt_driver.p_cuCtxGetDevice(device) : CUDA_SUCCESS);
}

cudaError_t cudaGetDeviceCount(int *count)
{
	return RT_CALL_OPEN(cuDeviceGetCount, count);
}

cudaError_t cudaDriverGetVersion(int *version)
{
	return RT_CALL_OPEN(cuDriverGetVersion, version);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	*version = RUNTIME_VERSION;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	return RT_CALL(cuCtxSynchronize);
}

cudaError_t cudaDeviceGetAttribute(int *value, int attr, int device)
{
	return RT_CALL_OPEN(cuDeviceGetAttribute, value, (CUdevice_attribute)attr, device);
}

static int attribute(CUdevice_attribute attr, int device)
{
	int value = 0;

	(void)rt_driver.p_cuDeviceGetAttribute(&value, attr, device);
	return value;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	size_t bytes = 0;
	CUresult r = rt_open();

	if (r == CUDA_SUCCESS && !prop)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = rt_driver.p_cuDeviceTotalMem(&bytes, device);
	if (r != CUDA_SUCCESS)
		return rt_result(r);
	memset(prop, 0, sizeof(*prop));
	(void)rt_driver.p_cuDeviceGetName(prop->name, (int)sizeof(prop->name), device);
	prop->totalGlobalMem = bytes;
	prop->sharedMemPerBlock =
		(size_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
	prop->warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
	prop->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
	prop->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	prop->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
	prop->multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	prop->canMapHostMemory = attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device);
	prop->unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device);
	prop->concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, device);
	prop->pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
	/*
	 * The values of a GPU with that capability; programs divide by them, and nothing depends
	 * on them.
	 */
	prop->maxThreadsPerMultiProcessor = 2048;
	prop->regsPerBlock = prop->regsPerMultiprocessor = 65536;
	prop->sharedMemPerMultiprocessor = 228 << 10;
	prop->l2CacheSize = 50 << 20;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	return RT_CALL_OPEN(cuDeviceGetPCIBusId, id, len, device);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	return RT_CALL_OPEN(cuDeviceGetByPCIBusId, device, id);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	return RT_CALL_OPEN(cuDeviceCanAccessPeer, can, device, peer);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	int device, can = 0;
	cudaError_t e = cudaGetDevice(&device);

	if (e == cudaSuccess)
		e = cudaDeviceCanAccessPeer(&can, device, peer);
	if (e != cudaSuccess)
		return e;
	return rt_result(can ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	return rt_result(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

/* Limits of stacks, heaps and queues of device code, which we do not have. */
cudaError_t cudaDeviceSetLimit(int limit, size_t value)
{
	return rt_result(rt_enter());
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	return RT_CALL(cuCtxGetStreamPriorityRange, least, greatest);
}

/* Profilers see only the host. */
cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}
