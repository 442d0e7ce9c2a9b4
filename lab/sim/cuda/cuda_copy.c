/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills of the simulated driver. Synchronous ones go through the default stream and
 * wait, so they come after all work in the context's blocking streams. A copy works in a stream of
 * any context, as with the real driver.
 *
 * An asynchronous copy is asynchronous only with memory that the device can access. With pageable
 * memory ("API synchronization behavior" in NVIDIA's description of the driver API), a copy to the
 * host returns when all data has arrived. A copy from the host returns when the bytes are staged,
 * that is saved elsewhere; a large one waits for the stream first. A copy between two places on the
 * host is practically synchronous. A captured copy only becomes part of a graph.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/sim/cuda/cuda_sim.h"

/*
 * Copies of at most this size do not wait: "A memory block of 64 KB or less" (CUDA programming
 * guide, asynchronous execution).
 */
#define STAGED_MAX (64u << 10)

static CUresult submit(struct sim_item *item, CUstream handle, bool is_sync)
{
	struct CUctx_st *ctx;
	struct CUstream_st *s;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (item->count == 0)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim_lock);
	r = sim_stream_resolve(handle, &s);
	if (r == CUDA_SUCCESS)
		r = sim_stream_submit(s, item);
	if (r == CUDA_SUCCESS && is_sync)
		sim_stream_wait(s, s->submitted);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

enum way {
	WAY_QUEUE, /* the device can access both sides when the stream reaches the copy */
	WAY_STAGE,
	WAY_WAIT,
};

/* Chooses the way of an asynchronous copy. Lock held. */
static enum way way_of(const void *dst, const void *src, size_t size)
{
	if (!sim_memory_is_device(dst, size) && !sim_memory_is_device(src, size))
		return WAY_WAIT;
	if (!sim_memory_is_device_visible((CUdeviceptr)(uintptr_t)dst, size))
		return WAY_WAIT;
	if (!sim_memory_is_device_visible((CUdeviceptr)(uintptr_t)src, size))
		return size <= STAGED_MAX ? WAY_STAGE : WAY_WAIT;
	return WAY_QUEUE;
}

/* Saves the bytes as they are now, because the caller may change them. */
static CUresult stage(struct sim_item *item)
{
	item->staging = malloc(item->count);
	if (!item->staging)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(item->staging, item->src, item->count);
	item->src = item->staging;
	return CUDA_SUCCESS;
}

static CUresult submit_async(struct sim_item *item, CUstream handle)
{
	enum way way = WAY_QUEUE;
	struct CUctx_st *ctx;
	struct CUstream_st *s;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS || item->count == 0)
		return r;
	pthread_mutex_lock(&sim_lock);
	r = sim_stream_resolve(handle, &s);
	if (r == CUDA_SUCCESS && !s->capture)
		way = way_of(item->dst, item->src, item->count);
	if (r == CUDA_SUCCESS && way == WAY_STAGE)
		r = stage(item);
	if (r == CUDA_SUCCESS) {
		r = sim_stream_submit(s, item);
		if (r != CUDA_SUCCESS)
			free(item->staging);
		else if (way == WAY_WAIT)
			sim_stream_wait(s, s->submitted);
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* @dst_is_dev, @src_is_dev: the sides that must be memory known to the driver. */
static CUresult copy(void *dst, bool dst_is_dev, const void *src, bool src_is_dev, size_t size,
		     CUstream stream, bool is_sync)
{
	struct sim_item item = { .kind = SIM_ITEM_COPY, .dst = dst, .src = src, .count = size };
	bool is_valid;

	pthread_mutex_lock(&sim_lock);
	is_valid =
		(!dst_is_dev || sim_memory_is_device_visible((CUdeviceptr)(uintptr_t)dst, size)) &&
		(!src_is_dev || sim_memory_is_device_visible((CUdeviceptr)(uintptr_t)src, size));
	pthread_mutex_unlock(&sim_lock);
	if (!is_valid || (size && (!dst || !src)))
		return CUDA_ERROR_INVALID_VALUE;
	return is_sync ? submit(&item, stream, true) : submit_async(&item, stream);
}

static void *at(CUdeviceptr ptr)
{
	return (void *)(uintptr_t)ptr;
}

/* With unified addressing, cuMemcpy takes host pointers too. */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return copy(at(dst), false, at(src), false, size, NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return copy(at(dst), false, at(src), false, size, stream, false);
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t size)
{
	return copy(at(dst), true, src, false, size, NULL, true);
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t size)
{
	return copy(dst, false, at(src), true, size, NULL, true);
}

CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return copy(at(dst), true, at(src), true, size, NULL, true);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return copy(at(dst), true, src, false, size, stream, false);
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return copy(dst, false, at(src), true, size, stream, false);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return copy(at(dst), true, at(src), true, size, stream, false);
}

static CUresult fill(enum sim_item_kind kind, CUdeviceptr dst, unsigned int value, size_t count,
		     CUstream stream, bool is_sync)
{
	struct sim_item item = { .kind = kind, .dst = at(dst), .value = value, .count = count };
	size_t size = kind == SIM_ITEM_SET32 ? 4 : 1;
	bool is_valid;

	if (dst % size || count > SIZE_MAX / size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	is_valid = sim_memory_is_device_visible(dst, count * size);
	pthread_mutex_unlock(&sim_lock);
	return is_valid ? submit(&item, stream, is_sync) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemsetD8(CUdeviceptr dst, unsigned char value, size_t count)
{
	return fill(SIM_ITEM_SET8, dst, value, count, NULL, true);
}

CUresult cuMemsetD32(CUdeviceptr dst, unsigned int value, size_t count)
{
	return fill(SIM_ITEM_SET32, dst, value, count, NULL, true);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	return fill(SIM_ITEM_SET8, dst, value, count, stream, false);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
	return fill(SIM_ITEM_SET32, dst, value, count, stream, false);
}
