/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/agent/cuda/fake_cuda.h"

#include <stddef.h>
#include <string.h>

#include "agent/base/cuda_abi.h"
#include "record/summary.h"

struct fake_cuda fake_cuda;

#define X(member, name, required, params) CUresult fake_##member params __asm__(name);
CW_CUDA_FUNCTIONS(X)
#undef X

static struct node {
	uint64_t address;
	uint32_t value;
} nodes[64];

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

CUresult fake_device_name(char *name, int len, CUdevice device)
{
	fake_cuda.names++;
	if (!fake_cuda.model)
		return 1;
	for (int i = 0; i < len && (i == 0 || fake_cuda.model[i - 1]); i++)
		name[i] = fake_cuda.model[i]; /* a name that is too long has no end */
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
	if (fake_cuda.registering)
		fake_cuda.registering();
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
	if (fake_cuda.capture_status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		if (fake_cuda.captured < 64)
			nodes[fake_cuda.captured++] = (struct node){ addr, value };
		return CUDA_SUCCESS;
	}
	fake_cuda.writes++;
	fake_cuda.last_address = addr;
	fake_cuda.last_value = value;
	if (!fake_cuda.holds_writes)
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

static void publish_only(const struct cw_summary_args *args)
{
	struct cw_rec_summary *out = (void *)(uintptr_t)args->out;

	__atomic_store_n(&out->publish, args->publish, __ATOMIC_RELEASE);
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
	if (fake_cuda.launching)
		fake_cuda.launching(stream, params[0]);
	if (fake_cuda.is_stuck)
		return CUDA_SUCCESS;
	if (fn == &summary_kernel && fake_cuda.computes_nothing)
		publish_only(params[0]);
	else if (fn == &summary_kernel)
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

/* ---- graphs: one at a time, an executable graph is the graph's handle plus one ---- */

#define F(name, ...)                                                                               \
	CUresult fake_##name(__VA_ARGS__) __asm__(#name);                                          \
	CUresult fake_##name(__VA_ARGS__)

F(cuStreamGetCaptureInfo_v2, CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
  void **graph, const void **deps, size_t *count)
{
	*status = fake_cuda.capture_status;
	*id = fake_cuda.capture_id;
	if (graph)
		*graph = fake_cuda.graph;
	return CUDA_SUCCESS;
}

F(cuStreamBeginCapture_v2, CUstream stream, int mode)
{
	fake_cuda.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	fake_cuda.capture_id++;
	return CUDA_SUCCESS;
}

F(cuStreamBeginCaptureToGraph, CUstream stream, void *graph, const void *deps, const void *data,
  size_t count, int mode)
{
	fake_cuda.graph = graph;
	return fake_cuStreamBeginCapture_v2(stream, mode);
}

F(cuStreamEndCapture, CUstream stream, void **graph)
{
	fake_cuda.capture_status = 0;
	*graph = fake_cuda.graph_result == CUDA_SUCCESS ? fake_cuda.graph : NULL;
	return fake_cuda.graph_result;
}

F(cuGraphCreate, void **graph, unsigned flags)
{
	*graph = fake_cuda.graph;
	return CUDA_SUCCESS;
}

F(cuGraphInstantiateWithFlags, void **exec, void *graph, unsigned long long flags)
{
	*exec = (char *)graph + 1;
	return CUDA_SUCCESS;
}

F(cuGraphInstantiate_v2, void **exec, void *graph, void **error_node, char *log, size_t log_size)
{
	*exec = (char *)graph + 1;
	fake_cuda.log_size = log_size;
	return CUDA_SUCCESS;
}

/* Behaves like a driver without the newer cuGraphInstantiate. */
F(cuGetProcAddress_v2, const char *name, void **fn, int version, uint64_t flags, int *status)
{
	*fn = strcmp(name, "cuGraphInstantiate") == 0 ? (void *)fake_cuGraphInstantiate_v2
						      : (void *)fake_cuGraphInstantiateWithFlags;
	return CUDA_SUCCESS;
}

F(cuGraphLaunch, void *exec, CUstream stream)
{
	if (fake_cuda.graph_result != CUDA_SUCCESS)
		return fake_cuda.graph_result;
	fake_cuda.graph_launches++;
	for (unsigned i = 0; i < fake_cuda.captured; i++) {
		if (fake_cuda.stop_after && i >= fake_cuda.stop_after)
			break;
		*(volatile uint32_t *)(uintptr_t)nodes[i].address = nodes[i].value;
	}
	if (fake_cuda.inside)
		fake_cuda.inside();
	return CUDA_SUCCESS;
}

F(cuGraphClone, void **clone, void *graph)
{
	*clone = (char *)graph + 2;
	return CUDA_SUCCESS;
}

F(cuGraphDestroy, void *graph)
{
	return CUDA_SUCCESS;
}

F(cuGraphExecDestroy, void *exec)
{
	return CUDA_SUCCESS;
}

F(cuGraphExecUpdate_v2, void *exec, void *graph, void *info)
{
	return CUDA_SUCCESS;
}

F(cuGraphAddChildGraphNode, void **node, void *graph, const void *deps, size_t count, void *child)
{
	return CUDA_SUCCESS;
}
