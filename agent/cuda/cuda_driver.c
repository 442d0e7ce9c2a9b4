/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <sched.h>

#include "agent/base/log.h"
#include "agent/base/next_dlsym.h"
#include "agent/record/record.h"

struct cw_cuda cw_cuda;

static bool is_complete;

static void find_driver(void)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	bool complete = true;
	int version = 0;
	void *handle;

	if (!next)
		return;
	/* We never close the handle, because our function pointers lead into the library. */
	handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	if (!handle) {
		(void)dlerror();
		return;
	}
#define X(member, name, required, params)                                                          \
	cw_cuda.member = (CUresult(*) params)next(handle, name);                                   \
	if (required && !cw_cuda.member)                                                           \
		complete = false;
	CW_CUDA_FUNCTIONS(X)
#undef X
	(void)dlerror();
	if (cw_cuda.driver_version && cw_cuda.driver_version(&version) == CUDA_SUCCESS)
		CW_STORE(cw_record.header->cuda_driver_version, (uint32_t)version);
	if (!complete)
		cw_log("the CUDA driver is too old for device progress");
	is_complete = complete;
}

/*
 * Finds the driver, when a caller needs it and not before. If NCCL makes the program's first call
 * into CUDA, no driver is loaded when the agent starts. One thread searches, and the other threads
 * wait for it, because dlopen(RTLD_NOLOAD) takes little time.
 */
bool cw_cuda_ready(void)
{
	/* 0 = no thread has searched, 1 = a thread is searching, 2 = a thread has searched */
	static int state;
	int expected = 0;

	if (__atomic_compare_exchange_n(&state, &expected, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		find_driver();
		__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 2)
		(void)sched_yield();
	return is_complete;
}

CUcontext cw_cuda_context_of(int ordinal)
{
	CUcontext ctx = NULL;
	CUdevice device, current;

	if (cw_cuda.ctx_get_current(&ctx) != CUDA_SUCCESS)
		return NULL;
	if (ordinal < 0 || !cw_cuda.device_get ||
	    cw_cuda.device_get(&device, ordinal) != CUDA_SUCCESS)
		return ctx;
	if (ctx && cw_cuda.ctx_get_device(&current) == CUDA_SUCCESS && current == device)
		return ctx;
	if (!cw_cuda.primary_retain || !cw_cuda.primary_release ||
	    cw_cuda.primary_retain(&ctx, device) != CUDA_SUCCESS)
		return NULL;
	(void)cw_cuda.primary_release(device); /* NCCL's own reference keeps the context */
	return ctx;
}

void cw_cuda_note_model(int ordinal)
{
	char name[CW_REC_MODEL_BYTES] = "", *model;
	CUdevice device;

	if (ordinal < 0 || ordinal >= CW_REC_DEVICES || !cw_cuda.device_get || !cw_cuda.device_name)
		return;
	model = cw_record.header->device_models[ordinal];
	if (CW_LOAD(*model) || cw_cuda.device_get(&device, ordinal) != CUDA_SUCCESS ||
	    cw_cuda.device_name(name, sizeof(name), device) != CUDA_SUCCESS)
		return;
	name[sizeof(name) - 1] = '\0';
	/*
	 * Other threads may read the name, or write the same name. Write the first byte last: a
	 * reader that sees the first byte then sees the whole name.
	 */
	for (size_t i = sizeof(name); i-- > 1;)
		CW_STORE(model[i], name[i]);
	__atomic_store_n(model, *name, __ATOMIC_RELEASE);
}

bool cw_cuda_push(CUcontext ctx, bool *ret_pushed)
{
	CUcontext current = NULL;

	*ret_pushed = false;
	if (cw_cuda.ctx_get_current(&current) != CUDA_SUCCESS)
		return false;
	if (current == ctx)
		return true;
	if (cw_cuda.ctx_push(ctx) != CUDA_SUCCESS)
		return false;
	*ret_pushed = true;
	return true;
}

void cw_cuda_pop(bool pushed)
{
	CUcontext ignored;

	if (pushed)
		(void)cw_cuda.ctx_pop(&ignored);
}
