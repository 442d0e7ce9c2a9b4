/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of streams in the simulated driver, and queued items other than copies.
 *
 * Work that runs "on the device" (a value write, a host function) needs the stream's own context to
 * be current, like a kernel launch. cuda_capture.c handles streams during a capture.
 */
#include "lab/sim/cuda/cuda_sim.h"

CUresult sim_stream_lock_in_ctx(CUstream handle, struct CUstream_st **ret_stream)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	r = sim_stream_lock(handle, ret_stream);
	if (r == CUDA_SUCCESS && (*ret_stream)->ctx != ctx) {
		pthread_mutex_unlock(&sim_lock);
		r = CUDA_ERROR_INVALID_HANDLE;
	}
	return r;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *user_data)
{
	struct sim_item item = { .kind = SIM_ITEM_HOST_FN, .fn = fn, .arg = user_data };
	struct CUstream_st *s;
	CUresult r;

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_lock_in_ctx(handle, &s);
	if (r != CUDA_SUCCESS)
		return r;
	r = sim_stream_submit(s, &item);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

static CUresult write_value(CUstream handle, struct sim_item *item, CUdeviceptr addr, size_t size,
			    unsigned int flags)
{
	struct CUstream_st *s;
	CUresult r;

	if (flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_lock_in_ctx(handle, &s);
	if (r != CUDA_SUCCESS)
		return r;
	item->dst = (void *)(uintptr_t)addr;
	item->has_barrier = !(flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
	if (addr % size || !sim_memory_is_device_visible(addr, size))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = sim_stream_submit(s, item);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuStreamWriteValue32(CUstream handle, CUdeviceptr addr, cuuint32_t value,
			      unsigned int flags)
{
	struct sim_item item = { .kind = SIM_ITEM_WRITE32, .value = value };

	return write_value(handle, &item, addr, sizeof(value), flags);
}

CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr addr, cuuint64_t value,
			      unsigned int flags)
{
	struct sim_item item = { .kind = SIM_ITEM_WRITE64, .value = value };

	return write_value(handle, &item, addr, sizeof(value), flags);
}

CUresult cuStreamSynchronize(CUstream handle)
{
	const struct sim_item nothing = { .kind = SIM_ITEM_SET32 };
	struct CUstream_st *s;
	CUresult r = sim_stream_lock(handle, &s);

	if (r != CUDA_SUCCESS)
		return r;
	/*
	 * A query of the default stream counts as an operation on it, so it waits for blocking
	 * streams.
	 */
	if (s->capture)
		r = sim_capture_spoil(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	else if (s == s->ctx->legacy)
		r = sim_stream_submit(s, &nothing);
	if (r == CUDA_SUCCESS)
		sim_stream_wait(s, s->submitted);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuStreamQuery(CUstream handle)
{
	struct CUstream_st *s;
	CUresult r = sim_stream_lock(handle, &s);

	if (r != CUDA_SUCCESS)
		return r;
	if (s->capture)
		r = sim_capture_spoil(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	else
		r = s->completed < s->submitted ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
	struct CUstream_st *s;
	CUresult r;

	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_lock(handle, &s);
	if (r != CUDA_SUCCESS)
		return r;
	*ctx = s->ctx;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
	struct CUstream_st *s;
	CUresult r;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_lock(handle, &s);
	if (r != CUDA_SUCCESS)
		return r;
	*flags = s->flags;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	struct CUstream_st *s;
	CUresult r;

	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_lock(handle, &s);
	if (r != CUDA_SUCCESS)
		return r;
	*priority = s->priority;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
	struct CUstream_st *s;
	CUresult r;

	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_stream_lock(handle, &s);
	if (r != CUDA_SUCCESS)
		return r;
	*id = s->id;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}
