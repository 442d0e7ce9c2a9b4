/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_cuda/fake_cuda.h"

#include <stddef.h>

#include "agent/cuda_abi.h"
#include "common/summary.h"

struct fake_cuda fake_cuda;

#define X(member, name, required, params) CUresult fake_##member params __asm__(name);
CW_CUDA_FUNCTIONS(X)
#undef X

static void *stack[8];
static unsigned depth;

CUresult fake_ctx_get_current(CUcontext *ctx)
{
	*ctx = fake_cuda.current;
	return CUDA_SUCCESS;
}

CUresult fake_ctx_push(CUcontext ctx)
{
	stack[depth++ % 8] = fake_cuda.current;
	fake_cuda.current = ctx;
	return CUDA_SUCCESS;
}

CUresult fake_ctx_pop(CUcontext *ctx)
{
	*ctx = fake_cuda.current;
	fake_cuda.current = stack[--depth % 8];
	return CUDA_SUCCESS;
}

CUresult fake_ctx_get_device(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

CUresult fake_device_get(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult fake_primary_retain(CUcontext *ctx, CUdevice device)
{
	*ctx = fake_cuda.stream_owner;
	return CUDA_SUCCESS;
}

CUresult fake_primary_release(CUdevice device)
{
	return CUDA_SUCCESS;
}

CUresult fake_host_register(void *p, size_t bytes, unsigned flags)
{
	fake_cuda.registrations++;
	fake_cuda.was_relaxed = fake_cuda.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED;
	return CUDA_SUCCESS;
}

CUresult fake_host_device_pointer(CUdeviceptr *dptr, void *p, unsigned flags)
{
	*dptr = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult fake_stream_write32(CUstream stream, CUdeviceptr addr, uint32_t value, unsigned flags)
{
	if (fake_cuda.current != fake_cuda.stream_owner)
		fake_cuda.was_wrong = true;
	if (fake_cuda.write_result != CUDA_SUCCESS)
		return fake_cuda.write_result;
	fake_cuda.writes++;
	fake_cuda.last_address = addr;
	fake_cuda.last_value = value;
	*(volatile uint32_t *)(uintptr_t)addr = value;
	return CUDA_SUCCESS;
}

CUresult fake_stream_is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
	*status = fake_cuda.capture_status;
	return fake_cuda.capture_result;
}

CUresult fake_exchange_capture_mode(CUstreamCaptureMode *mode)
{
	int old = fake_cuda.capture_mode;

	fake_cuda.capture_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

CUresult fake_driver_version(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

static char summary_kernel, stamp_kernel;

CUresult fake_module_load(CUmodule *module, const void *image)
{
	fake_cuda.modules++;
	*module = &fake_cuda;
	return CUDA_SUCCESS;
}

CUresult fake_module_function(CUfunction *fn, CUmodule module, const char *name)
{
	*fn = name[3] == 's' && name[4] == 'u' ? &summary_kernel : &stamp_kernel;
	return CUDA_SUCCESS;
}

CUresult fake_launch(CUfunction fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		     unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	static uint64_t clock_ns = 1000;

	if (fake_cuda.current != fake_cuda.stream_owner)
		fake_cuda.was_wrong = true;
	if (fake_cuda.launch_result != CUDA_SUCCESS)
		return fake_cuda.launch_result;
	fake_cuda.launches++;
	if (fake_cuda.is_stuck)
		return CUDA_SUCCESS;
	if (fn == &summary_kernel)
		cw_summary_run(params[0]);
	else
		*(volatile uint64_t *)(uintptr_t)(*(uint64_t *)params[0]) = clock_ns += 500;
	return CUDA_SUCCESS;
}

CUresult fake_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr p)
{
	if (fake_cuda.range_base && p - fake_cuda.range_base >= fake_cuda.range_bytes)
		return 1;
	*base = fake_cuda.range_base;
	*bytes = fake_cuda.range_base ? fake_cuda.range_bytes : SIZE_MAX;
	return CUDA_SUCCESS;
}
