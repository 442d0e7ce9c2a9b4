/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory. An address shows its kind (unified addressing), so we ignore the kind argument of a copy.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "lab/nccl/cudart/runtime.h"

static CUdeviceptr device_ptr(const void *ptr)
{
	return (CUdeviceptr)(uintptr_t)ptr;
}

cudaError_t cudaMalloc(void **ptr, size_t size)
{
	CUdeviceptr p = 0;
	cudaError_t e = cudaSuccess;

	if (!ptr)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	if (size > 0)
		e = RT_CALL(cuMemAlloc, &p, size);
	if (e == cudaSuccess)
		*ptr = (void *)(uintptr_t)p;
	return e;
}

cudaError_t cudaFree(void *ptr)
{
	return RT_CALL(cuMemFree, device_ptr(ptr));
}

cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	return RT_CALL(cuMemHostAlloc, ptr, size, flags);
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return cudaHostAlloc(ptr, size, 0);
}

cudaError_t cudaFreeHost(void *ptr)
{
	return RT_CALL(cuMemFreeHost, ptr);
}

static uintptr_t page_of(const void *ptr)
{
	return (uintptr_t)ptr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/* The simulated driver needs whole pages: we do not separate ranges that share a page. */
cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	uintptr_t start = page_of(ptr);
	uintptr_t end =
		page_of((void *)((uintptr_t)ptr + size + (uintptr_t)sysconf(_SC_PAGESIZE) - 1));

	if (!ptr || size == 0 || end < start)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	return RT_CALL(cuMemHostRegister, (void *)start, end - start, flags);
}

cudaError_t cudaHostUnregister(void *ptr)
{
	return RT_CALL(cuMemHostUnregister, (void *)page_of(ptr));
}

cudaError_t cudaHostGetDevicePointer(void **dev_ptr, void *ptr, unsigned int flags)
{
	CUdeviceptr p = 0;
	cudaError_t e;

	if (!dev_ptr)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	e = RT_CALL(cuMemHostGetDevicePointer, &p, ptr, flags);
	if (e == cudaSuccess)
		*dev_ptr = (void *)(uintptr_t)p;
	return e;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	return RT_CALL(cuMemGetInfo, free_bytes, total_bytes);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind)
{
	return RT_CALL(cuMemcpy, device_ptr(dst), device_ptr(src), size);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	return RT_CALL(cuMemcpyAsync, device_ptr(dst), device_ptr(src), size, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
				size_t size, cudaStream_t stream)
{
	return cudaMemcpyAsync(dst, src, size, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	cudaError_t e = cudaSuccess;

	if (width > dst_pitch || width > src_pitch)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < height && e == cudaSuccess; i++)
		e = cudaMemcpyAsync((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch,
				    width, kind, stream);
	return e;
}

cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes,
				 size_t count, void *attrs, size_t *attr_indices, size_t num_attrs,
				 cudaStream_t stream)
{
	cudaError_t e = cudaSuccess;

	for (size_t i = 0; i < count && e == cudaSuccess; i++)
		e = cudaMemcpyAsync(dsts[i], srcs[i], sizes[i], cudaMemcpyDefault, stream);
	return e;
}

cudaError_t cudaMemset(void *dst, int value, size_t size)
{
	if (size == 0)
		return cudaSuccess;
	return RT_CALL(cuMemsetD8, device_ptr(dst), (unsigned char)value, size);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t size, cudaStream_t stream)
{
	if (size == 0)
		return cudaSuccess;
	return RT_CALL(cuMemsetD8Async, device_ptr(dst), (unsigned char)value, size, stream);
}

cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaStream_t stream)
{
	CUdeviceptr p = 0;
	cudaError_t e = RT_CALL(cuMemAllocAsync, &p, size, stream);

	if (e == cudaSuccess)
		*ptr = (void *)(uintptr_t)p;
	return e;
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool,
				    cudaStream_t stream)
{
	CUdeviceptr p = 0;
	cudaError_t e = RT_CALL(cuMemAllocFromPoolAsync, &p, size, pool, stream);

	if (e == cudaSuccess)
		*ptr = (void *)(uintptr_t)p;
	return e;
}

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	return RT_CALL(cuMemFreeAsync, device_ptr(ptr), stream);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const void *props)
{
	return RT_CALL(cuMemPoolCreate, pool, props);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	return RT_CALL(cuMemPoolDestroy, pool);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attr, void *value)
{
	return RT_CALL(cuMemPoolSetAttribute, pool, attr, value);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *ptr)
{
	unsigned int type = 0;
	CUresult r = rt_enter();

	if (r != CUDA_SUCCESS || !attributes)
		return rt_result(attributes ? r : CUDA_ERROR_INVALID_VALUE);
	memset(attributes, 0, sizeof(*attributes));
	attributes->device = -2; /* cudaInvalidDeviceId */
	attributes->hostPointer = (void *)(uintptr_t)ptr;
	if (rt_driver.p_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					      device_ptr(ptr)) != CUDA_SUCCESS)
		return cudaSuccess; /* pageable: a valid answer since CUDA 11 */
	attributes->type = type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
	attributes->devicePointer = (void *)(uintptr_t)ptr;
	if (type == CU_MEMORYTYPE_DEVICE)
		attributes->hostPointer = NULL;
	return rt_result(rt_driver.p_cuPointerGetAttribute(
		&attributes->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device_ptr(ptr)));
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	return RT_CALL(cuIpcGetMemHandle, (CUipcMemHandle *)handle, device_ptr(ptr));
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle its;
	CUdeviceptr p = 0;
	cudaError_t e;

	if (!ptr)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	memcpy(&its, &handle, sizeof(its));
	e = RT_CALL(cuIpcOpenMemHandle, &p, its, flags);
	if (e == cudaSuccess)
		*ptr = (void *)(uintptr_t)p;
	return e;
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	return RT_CALL(cuIpcCloseMemHandle, device_ptr(ptr));
}
