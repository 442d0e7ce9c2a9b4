/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot is a pair of words for one communicator on one stream. The communicator's entry caches the
 * slots of its streams. On a cache miss we search all slots, and then claim a free one. Streams
 * take slots in ascending order. CUDA graphs take slots from the end of the table.
 */
#include "agent/cuda/progress.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/cuda/cuda_driver.h"
#include "agent/cuda/device_times.h"
#include "agent/cuda/progress_budget.h"
#include "agent/cuda/summary.h"
#include "agent/record/clock.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "common/parse.h"

#define REGISTER_WAIT_NS UINT64_C(1000000000)

static unsigned char register_once; /* set once: the driver then owns the progress pages */
static bool is_registered, is_registering_over;
static uint32_t slots_used;

/*
 * Returns whether the user wants progress. The thread that makes the first communicator ready reads
 * the environment. Other threads use its result.
 */
static bool is_wanted(void)
{
	static int answer; /* 0 = not read, 1 = no, 2 = yes */
	int known = CW_LOAD(answer);
	const char *value;
	bool is_on;

	if (!known) {
		value = getenv("COLLWATCH_PROGRESS");
		known = value && cw_parse_switch(value, &is_on) == 0 && !is_on ? 1 : 2;
		if (value && strcmp(value, "auto") == 0)
			CW_STORE(cw_progress_budget_is_on, true);
		CW_STORE(answer, known);
	}
	return known == 2;
}

/*
 * Registers the progress pages with the driver. A registration may invalidate a capture in any
 * thread, unless this thread's capture mode is relaxed. PORTABLE: one registration serves all
 * contexts.
 */
static bool register_pages(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r;

	memset(cw_record.device_pages, 0,
	       cw_record.device_bytes); /* the driver pins the pages, so make them resident first */
	if (cw_cuda.exchange_capture_mode)
		(void)cw_cuda.exchange_capture_mode(&mode);
	r = cw_cuda.host_register(cw_record.device_pages, cw_record.device_bytes,
				  CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (cw_cuda.exchange_capture_mode)
		(void)cw_cuda.exchange_capture_mode(&mode);
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
		cw_log("the driver does not take the progress pages: error %d", r);
		return false;
	}
	(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_PROGRESS, __ATOMIC_RELAXED);
	return true;
}

/*
 * Returns whether the pages are registered. The first thread registers them. Other threads, each
 * with its own device, wait for the first one. The wait has a limit, because the first thread may
 * be waiting inside the driver for a launch of another thread.
 */
static bool are_pages_registered(void)
{
	uint64_t until;

	if (!__atomic_load_n(&is_registering_over, __ATOMIC_ACQUIRE)) {
		if (!__atomic_test_and_set(&register_once, __ATOMIC_ACQ_REL)) {
			is_registered = register_pages();
			__atomic_store_n(&is_registering_over, true, __ATOMIC_RELEASE);
		}
		until = cw_now_ns() + REGISTER_WAIT_NS;
		while (!__atomic_load_n(&is_registering_over, __ATOMIC_ACQUIRE)) {
			if (cw_now_ns() >= until)
				return false;
			(void)sched_yield();
		}
	}
	return is_registered;
}

void cw_progress_comm_ready(int c)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];
	int saved_errno = errno;
	CUdeviceptr words = 0;
	CUcontext ctx;
	bool pushed;

	/*
	 * Any thread that polls a non-blocking communicator may launch its ops. We then cannot rely
	 * on the order of a stream.
	 */
	if (!is_wanted() || !cw_cuda_ready() || (rc->flags & CW_REC_COMM_NONBLOCKING))
		goto lost;
	cw_cuda_note_model((int)CW_LOAD(rc->device));
	ctx = cw_cuda_context_of((int)CW_LOAD(rc->device));
	if (!ctx || !cw_cuda_push(ctx, &pushed))
		goto lost;
	if (are_pages_registered() &&
	    cw_cuda.host_device_pointer(&words, cw_record.device_pages, 0) != CUDA_SUCCESS)
		words = 0;
	if (words) {
		cw_summary_comm_ready(ctx, words);
		cw_times_comm_ready(ctx, words);
	}
	cw_cuda_pop(pushed);
	if (!words)
		goto lost;
	cw_comms[c].device_words = words;
	__atomic_store_n(&cw_comms[c].context, ctx, __ATOMIC_RELEASE);
	errno = saved_errno;
	return;
lost:
	(void)__atomic_fetch_or(&rc->flags, CW_REC_COMM_PROGRESS_LOST, __ATOMIC_RELAXED);
	errno = saved_errno;
}

void cw_progress_comm_forget(int c)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];

	/*
	 * If the program did not shut down the communicator properly, the GPU may still write for
	 * it. We then do not free its slots.
	 */
	if (rc->state != CW_COMM_DESTROYED)
		return;
	for (uint32_t i = 0; i < CW_REC_PROGRESS_SLOTS; i++) {
		if (cw_record.progress_info[i].comm_plus_1 == (uint32_t)c + 1)
			CW_STORE(cw_record.progress_info[i].comm_plus_1, 0u);
	}
}

static bool claim(struct cw_rec_progress_info *info, int c)
{
	uint32_t free_word = 0;

	return __atomic_compare_exchange_n(&info->comm_plus_1, &free_word, UINT32_MAX, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Claims a slot for the first op of a communicator on a stream. */
static uint16_t new_slot(int c, cudaStream_t stream, uint64_t op_index)
{
	for (uint32_t n = 0; n < CW_REC_PROGRESS_SLOTS; n++) {
		uint32_t i = (__atomic_load_n(&slots_used, __ATOMIC_RELAXED) + n) %
			     CW_REC_PROGRESS_SLOTS;
		struct cw_rec_progress_info *info = &cw_record.progress_info[i];

		if (!claim(info, c))
			continue;
		__atomic_store_n(&slots_used, i + 1, __ATOMIC_RELAXED);
		if (CW_LOAD(cw_progress_budget_is_on))
			cw_progress_budget_reset((uint16_t)i);
		CW_STORE(info->comm_generation, cw_record.comms[c].generation);
		CW_STORE(info->context, (uint64_t)(uintptr_t)cw_comms[c].context);
		CW_STORE(info->stream, (uint64_t)(uintptr_t)stream);
		CW_STORE(info->base, op_index - 1);
		CW_STORE(cw_record.progress[i].reached, (uint32_t)(op_index - 1));
		CW_STORE(cw_record.progress[i].completed, (uint32_t)(op_index - 1));
		__atomic_store_n(&info->comm_plus_1, (uint32_t)c + 1, __ATOMIC_RELEASE);
		return (uint16_t)i;
	}
	return CW_REC_NO_SLOT;
}

uint16_t cw_progress_take(int c)
{
	for (uint32_t i = CW_REC_PROGRESS_SLOTS; i-- > 0;) {
		struct cw_rec_progress_info *info = &cw_record.progress_info[i];

		if (!claim(info, c))
			continue;
		CW_STORE(info->comm_generation, cw_record.comms[c].generation);
		CW_STORE(info->context, (uint64_t)(uintptr_t)cw_comms[c].context);
		CW_STORE(info->stream, (uint64_t)0);
		CW_STORE(info->base, (uint64_t)0);
		CW_STORE(cw_record.progress[i].reached, 0u);
		CW_STORE(cw_record.progress[i].completed, 0u);
		__atomic_store_n(&info->comm_plus_1, ((uint32_t)c + 1) | CW_REC_SLOT_OF_GRAPH,
				 __ATOMIC_RELEASE);
		return (uint16_t)i;
	}
	return CW_REC_NO_SLOT;
}

void cw_progress_give_back(uint16_t slot)
{
	CW_STORE(cw_record.progress_info[slot].comm_plus_1, 0u);
}

/* Handles a cache miss: searches all slots, then claims a new one. */
static uint16_t find_slot(int c, cudaStream_t stream, uint64_t op_index)
{
	for (uint32_t i = 0; i < CW_REC_PROGRESS_SLOTS; i++) {
		const struct cw_rec_progress_info *info = &cw_record.progress_info[i];

		if (__atomic_load_n(&info->comm_plus_1, __ATOMIC_ACQUIRE) == (uint32_t)c + 1 &&
		    info->stream == (uint64_t)(uintptr_t)stream &&
		    info->comm_generation == cw_record.comms[c].generation)
			return (uint16_t)i;
	}
	return new_slot(c, stream, op_index);
}

static uint16_t slot_of(int c, cudaStream_t stream, uint64_t op_index)
{
	uint64_t key = (uint64_t)(uintptr_t)stream + 1;
	struct cw_comm *comm = &cw_comms[c];
	uint16_t slot;

	for (unsigned i = 0; i < CW_COMM_STREAMS; i++) {
		if (__atomic_load_n(&comm->streams[i].stream_plus_1, __ATOMIC_ACQUIRE) == key)
			return (uint16_t)comm->streams[i].slot;
	}
	slot = find_slot(c, stream, op_index);
	if (slot == CW_REC_NO_SLOT)
		return slot;
	for (unsigned i = 0; i < CW_COMM_STREAMS; i++) {
		if (comm->streams[i].stream_plus_1)
			continue;
		comm->streams[i].slot = slot;
		__atomic_store_n(&comm->streams[i].stream_plus_1, key, __ATOMIC_RELEASE);
		break;
	}
	return slot;
}

struct cw_progress_at cw_progress_at(int c, cudaStream_t stream, uint64_t op_index)
{
	struct cw_progress_at at = { .slot = CW_REC_NO_SLOT };
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	int saved_errno = errno;

	if (!__atomic_load_n(&cw_comms[c].context, __ATOMIC_ACQUIRE))
		return at;
	/* An error here means that a capture in another stream forbids work on this stream. */
	if (cw_cuda.stream_is_capturing &&
	    cw_cuda.stream_is_capturing(stream, &status) != CUDA_SUCCESS)
		goto out;
	at.is_captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
	if (!at.is_captured)
		at.slot = slot_of(c, stream, op_index);
out:
	if (at.slot == CW_REC_NO_SLOT && !at.is_captured) {
		cw_record_drop(CW_REC_DROP_PROGRESS);
		(void)__atomic_fetch_or(&cw_record.comms[c].flags, CW_REC_COMM_PROGRESS_LOST,
					__ATOMIC_RELAXED);
	}
	errno = saved_errno;
	return at;
}

static bool write_word(int c, uint64_t offset, cudaStream_t stream, uint32_t value)
{
	struct cw_comm *comm = &cw_comms[c];
	CUcontext ctx = __atomic_load_n(&comm->context, __ATOMIC_ACQUIRE);
	int saved_errno = errno;
	bool pushed, ok = false;

	if (!ctx || !cw_cuda_push(ctx, &pushed))
		goto out;
	ok = cw_cuda.stream_write32(stream, comm->device_words + offset, value,
				    CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
	cw_cuda_pop(pushed);
	if (!ok) {
		/*
		 * The stream or context is in error. We do not report the error, because the
		 * application learns of it from its own calls.
		 */
		__atomic_store_n(&comm->context, NULL, __ATOMIC_RELEASE);
		(void)__atomic_fetch_or(&cw_record.comms[c].flags, CW_REC_COMM_PROGRESS_LOST,
					__ATOMIC_RELAXED);
	}
out:
	errno = saved_errno;
	return ok;
}

bool cw_progress_reached(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index)
{
	if (cw_unlikely(cw_progress_budget_is_on))
		cw_progress_budget_open(cw_progress_budget_of(slot), op_index, cw_op_ns());
	return write_word(c, slot * sizeof(struct cw_rec_progress), stream, (uint32_t)op_index);
}

bool cw_progress_completed(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index)
{
	bool ok = write_word(c,
			     slot * sizeof(struct cw_rec_progress) +
				     offsetof(struct cw_rec_progress, completed),
			     stream, (uint32_t)op_index);

	if (cw_unlikely(cw_progress_budget_is_on) && ok)
		cw_progress_budget_close(cw_progress_budget_of(slot), op_index, cw_op_ns());
	return ok;
}
