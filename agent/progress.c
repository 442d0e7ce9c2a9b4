/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/progress.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/comms.h"
#include "agent/cuda_abi.h"
#include "agent/log.h"
#include "agent/real.h"
#include "agent/record.h"

static struct {
#define X(member, name, required, params) CUresult(*member) params;
	CW_CUDA_FUNCTIONS(X)
#undef X
} cuda;

static bool is_on;
static unsigned char register_once; /* progress pages belong to the driver */
static bool is_registered;
static uint32_t slots_used;

static bool is_wanted(void)
{
	const char *value = getenv("COLLWATCH_PROGRESS");

	return !value || strcmp(value, "off") != 0;
}

static void find_driver(void)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	bool complete = true;
	int version = 0;
	void *handle;

	if (!next || !is_wanted())
		return;
	handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY); /* kept: the pointers need it */
	if (!handle) {
		(void)dlerror();
		return;
	}
#define X(member, name, required, params)                                                          \
	cuda.member = (CUresult(*) params)next(handle, name);                                      \
	if (required && !cuda.member)                                                              \
		complete = false;
	CW_CUDA_FUNCTIONS(X)
#undef X
	(void)dlerror();
	if (cuda.driver_version && cuda.driver_version(&version) == CUDA_SUCCESS)
		CW_STORE(cw_record.header->cuda_driver_version, (uint32_t)version);
	if (!complete)
		cw_log("the CUDA driver is too old for device progress");
	is_on = complete;
}

/*
 * Not at the agent's start: a program whose first call into CUDA is NCCL's has no driver loaded
 * before that. One thread looks, others that come meanwhile wait: dlopen(RTLD_NOLOAD) is short.
 */
static bool has_driver(void)
{
	static int state; /* 0 = not looked, 1 = looking, 2 = looked */
	int expected = 0;

	if (__atomic_compare_exchange_n(&state, &expected, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		find_driver();
		__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 2)
		(void)sched_yield();
	return is_on;
}

/*
 * Host registration may invalidate somebody's capture in any thread unless this one is relaxed.
 * PORTABLE: one registration serves all contexts.
 */
static bool register_pages(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r;

	if (__atomic_load_n(&is_registered, __ATOMIC_ACQUIRE))
		return true;
	if (__atomic_test_and_set(&register_once, __ATOMIC_ACQ_REL))
		return __atomic_load_n(&is_registered, __ATOMIC_ACQUIRE);
	memset(cw_record.progress, 0, cw_record.progress_bytes); /* resident before it is pinned */
	if (cuda.exchange_capture_mode)
		(void)cuda.exchange_capture_mode(&mode);
	r = cuda.host_register(cw_record.progress, cw_record.progress_bytes,
			       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (cuda.exchange_capture_mode)
		(void)cuda.exchange_capture_mode(&mode);
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
		cw_log("the driver does not take the progress pages: error %d", r);
		return false;
	}
	__atomic_store_n(&is_registered, true, __ATOMIC_RELEASE);
	(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_PROGRESS, __ATOMIC_RELAXED);
	return true;
}

/* The current context when it is on the communicator's device, else that device's primary one. */
static CUcontext context_of(int ordinal)
{
	CUcontext ctx = NULL;
	CUdevice device, current;

	if (cuda.ctx_get_current(&ctx) != CUDA_SUCCESS)
		return NULL;
	if (ordinal < 0 || !cuda.device_get || cuda.device_get(&device, ordinal) != CUDA_SUCCESS)
		return ctx;
	if (ctx && cuda.ctx_get_device(&current) == CUDA_SUCCESS && current == device)
		return ctx;
	if (!cuda.primary_retain || !cuda.primary_release ||
	    cuda.primary_retain(&ctx, device) != CUDA_SUCCESS)
		return NULL;
	(void)cuda.primary_release(device); /* NCCL's own reference keeps it */
	return ctx;
}

static bool push(CUcontext ctx, bool *ret_pushed)
{
	CUcontext current = NULL;

	*ret_pushed = false;
	if (cuda.ctx_get_current(&current) != CUDA_SUCCESS)
		return false;
	if (current == ctx)
		return true;
	if (cuda.ctx_push(ctx) != CUDA_SUCCESS)
		return false;
	*ret_pushed = true;
	return true;
}

static void pop(bool pushed)
{
	CUcontext ignored;

	if (pushed)
		(void)cuda.ctx_pop(&ignored);
}

void cw_progress_comm_ready(int c, int device)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];
	int saved_errno = errno;
	CUdeviceptr words = 0;
	CUcontext ctx;
	bool pushed;

	/* A non-blocking communicator launches from whichever thread polls it: no stream order of
	 * ours to rely on. */
	if (!has_driver() || (rc->flags & CW_REC_COMM_NONBLOCKING))
		goto lost;
	ctx = context_of(device);
	if (!ctx || !push(ctx, &pushed))
		goto lost;
	if (register_pages() &&
	    cuda.host_device_pointer(&words, cw_record.progress, 0) != CUDA_SUCCESS)
		words = 0;
	pop(pushed);
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

void cw_progress_forget(int c)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];

	/* The GPU may still write for a communicator that was not shut down in order. */
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

/* First op of a communicator on a stream. */
static uint16_t new_slot(int c, cudaStream_t stream, uint64_t op_index)
{
	for (uint32_t n = 0; n < CW_REC_PROGRESS_SLOTS; n++) {
		uint32_t i = (__atomic_load_n(&slots_used, __ATOMIC_RELAXED) + n) %
			     CW_REC_PROGRESS_SLOTS;
		struct cw_rec_progress_info *info = &cw_record.progress_info[i];

		if (!claim(info, c))
			continue;
		__atomic_store_n(&slots_used, i + 1, __ATOMIC_RELAXED);
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

/* Not in the cache: look at all slots, then take a new one. */
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
	/* An error here means a capture elsewhere forbids work on this stream. */
	if (cuda.stream_is_capturing && cuda.stream_is_capturing(stream, &status) != CUDA_SUCCESS)
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

	if (!ctx || !push(ctx, &pushed))
		goto out;
	ok = cuda.stream_write32(stream, comm->device_words + offset, value,
				 CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
	pop(pushed);
	if (!ok) {
		/* A stream or context in error. Not the place to say so: the application learns of
		 * it from its own calls. */
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
	return write_word(c, slot * sizeof(struct cw_rec_progress), stream, (uint32_t)op_index);
}

bool cw_progress_completed(int c, uint16_t slot, cudaStream_t stream, uint64_t op_index)
{
	return write_word(c,
			  slot * sizeof(struct cw_rec_progress) +
				  offsetof(struct cw_rec_progress, completed),
			  stream, (uint32_t)op_index);
}
