/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/tensor_stats.h"

#include <errno.h>
#include <stddef.h>

#include "agent/cuda/cuda_driver.h"
#include "agent/cuda/kernels.h"
#include "record/record_layout.h"
#include "record/summary_math.h"

/*
 * The streams that have a scratch area. Launches on one stream run one after the other, so each
 * stream needs only one area. When all areas are in use, launches on other streams have a single
 * block, which needs no area. If a new stream gets the handle of a destroyed one, it also gets the
 * area of that stream.
 */
static void *streams[CW_SUM_STREAMS];

#define PER_THREAD_STREAM ((void *)(uintptr_t)2) /* CU_STREAM_PER_THREAD */

static bool is_wanted;

bool cw_tensor_stats_are_wanted(void)
{
	return __atomic_load_n(&is_wanted, __ATOMIC_ACQUIRE);
}

static struct cw_kernels *kernels_here(CUcontext *ret_context)
{
	if (!cw_agent_is_armed() || !cw_cuda_ready() ||
	    cw_cuda.ctx_get_current(ret_context) != CUDA_SUCCESS || !*ret_context)
		return NULL;
	return cw_kernels_of(*ret_context);
}

bool collwatch_tensor_stats_load(void)
{
	int saved_errno = errno;
	CUcontext context = NULL;
	bool is_there;

	__atomic_store_n(&is_wanted, true, __ATOMIC_RELEASE);
	is_there = kernels_here(&context) != NULL;
	if (!is_there && context) {
		cw_kernels_load(context, 0);
		is_there = cw_kernels_of(context) != NULL;
	}
	errno = saved_errno;
	return is_there;
}

/*
 * Returns the stream's scratch area; CW_SUM_STREAMS = none. The handle of the legacy default stream
 * is NULL, which means "free" in the table, so we add one to each handle.
 */
static uint32_t place_of(void *stream)
{
	void *wanted = (char *)stream + 1;

	if (stream == PER_THREAD_STREAM)
		return CW_SUM_STREAMS; /* the same handle is a different stream in each thread */
	for (uint32_t i = 0; i < CW_SUM_STREAMS; i++) {
		void *found = __atomic_load_n(&streams[i], __ATOMIC_ACQUIRE);

		if (found == wanted)
			return i;
		if (!found && __atomic_compare_exchange_n(&streams[i], &found, wanted, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return i;
		if (found == wanted) /* another thread stored the same stream first */
			return i;
	}
	return CW_SUM_STREAMS;
}

bool collwatch_tensor_stats(uint64_t data, uint64_t elements, int dtype, void *stream, uint64_t out)
{
	struct cw_summary_args args = {
		.data = data,
		.elements = elements,
		.stride_words = CW_SUM_CHUNK_WORDS,
		.tensor_stats = out,
		.dtype = (uint8_t)dtype,
	};
	int saved_errno = errno;
	CUcontext context = NULL;
	struct cw_kernels *k;
	bool is_launched = false;
	uint32_t place;

	if (dtype < 0 || dtype >= CW_SUM__MAX || !cw_sum_special((unsigned)dtype) || !elements ||
	    data % cw_sum_bytes((unsigned)dtype) || !out || out % sizeof(double))
		return false;
	k = kernels_here(&context);
	if (k && cw_kernels_may_launch(stream)) {
		/*
		 * An area per stream suffices: each context has its own scratch areas, and a stream
		 * belongs to one context.
		 */
		place = place_of(stream);
		args.slot = CW_REC_SUMMARY_RING + place;
		is_launched = cw_kernels_sum_for_program(k, stream, &args, place == CW_SUM_STREAMS);
	}
	errno = saved_errno;
	return is_launched;
}
