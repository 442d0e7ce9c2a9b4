/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and contexts of the simulated driver. SIM_CUDA_DEVICES is the number of devices. In a
 * forked child, every call returns CUDA_ERROR_NOT_INITIALIZED, as with the real driver. The worker
 * threads did not survive the fork, so nothing that the child queued could ever run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/cuda/cuda_sim.h"

#define CTX_STACK_MAX 32

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static int device_count; /* 0: cuInit has not been called */
static volatile int is_forked;
static struct CUctx_st *contexts;
static struct CUctx_st *primaries[SIM_DEVICES_MAX];
static unsigned long long next_ctx_id = 1;

static __thread struct CUctx_st *ctx_stack[CTX_STACK_MAX];
static __thread int ctx_depth;
static __thread bool is_in_host_fn;

static void on_fork_child(void)
{
	is_forked = 1;
}

CUresult cuInit(unsigned int flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_forked)
		return CUDA_ERROR_NOT_INITIALIZED;

	pthread_mutex_lock(&sim_lock);
	if (!device_count) {
		const char *env = getenv("SIM_CUDA_DEVICES");
		long n = env ? strtol(env, NULL, 10) : SIM_DEVICES_DEFAULT;

		device_count = n < 1 ? 1 : n > SIM_DEVICES_MAX ? SIM_DEVICES_MAX : (int)n;
		(void)pthread_atfork(NULL, NULL, on_fork_child); /* fails only without memory */
	}
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

int sim_device_count(void)
{
	return device_count;
}

void sim_set_in_host_fn(bool is_inside)
{
	is_in_host_fn = is_inside;
}

CUresult sim_enter(void)
{
	if (!device_count || is_forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	return is_in_host_fn ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult sim_enter_ctx(struct CUctx_st **ret_ctx)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (ctx_depth == 0 || !ctx_stack[ctx_depth - 1])
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx_stack[ctx_depth - 1]->is_alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_ctx = ctx_stack[ctx_depth - 1];
	return CUDA_SUCCESS;
}

bool sim_ctx_is_valid(struct CUctx_st *ctx)
{
	for (struct CUctx_st *c = contexts; c; c = c->next) {
		if (c == ctx)
			return c->is_alive;
	}
	return false;
}

/*
 * Makes a context. We never free contexts, because we must always distinguish stale handles from
 * live ones. Lock held.
 */
static struct CUctx_st *ctx_new(CUdevice dev, unsigned int flags, bool is_primary)
{
	struct CUctx_st *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->dev = dev;
	ctx->flags = flags;
	ctx->is_primary = is_primary;
	ctx->is_alive = true;
	ctx->id = next_ctx_id++;
	ctx->next = contexts;
	contexts = ctx;
	return ctx;
}

static bool device_is_valid(CUdevice dev)
{
	return dev >= 0 && dev < device_count;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret_ctx, CUdevice dev)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_is_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;

	pthread_mutex_lock(&sim_lock);
	if (!primaries[dev])
		primaries[dev] = ctx_new(dev, 0, true);
	if (primaries[dev]) {
		primaries[dev]->is_alive = true;
		primaries[dev]->primary_refs++;
		*ret_ctx = primaries[dev];
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!device_is_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;

	pthread_mutex_lock(&sim_lock);
	if (!primaries[dev] || primaries[dev]->primary_refs == 0) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else if (--primaries[dev]->primary_refs == 0) {
		sim_ctx_drain(primaries[dev]);
		primaries[dev]->is_alive = false;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!device_is_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;

	pthread_mutex_lock(&sim_lock);
	if (!primaries[dev])
		primaries[dev] = ctx_new(dev, flags, true);
	if (primaries[dev]) {
		primaries[dev]->flags = flags;
		primaries[dev]->is_alive = primaries[dev]->primary_refs > 0;
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_is_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;

	pthread_mutex_lock(&sim_lock);
	*flags = primaries[dev] ? primaries[dev]->flags : 0;
	*active = primaries[dev] && primaries[dev]->primary_refs > 0;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult ctx_push(struct CUctx_st *ctx)
{
	if (ctx_depth == CTX_STACK_MAX)
		return CUDA_ERROR_INVALID_CONTEXT;
	ctx_stack[ctx_depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *ret_ctx, unsigned int flags, CUdevice dev)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_is_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;

	pthread_mutex_lock(&sim_lock);
	ctx = ctx_new(dev, flags, false);
	pthread_mutex_unlock(&sim_lock);
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = ctx_push(ctx);
	if (r == CUDA_SUCCESS)
		*ret_ctx = ctx;
	return r;
}

CUresult cuCtxCreate(CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	/* We do not simulate execution affinity and CIG. */
	return params ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&sim_lock);
	if (!sim_ctx_is_valid(ctx) || ctx->is_primary) {
		r = CUDA_ERROR_INVALID_CONTEXT;
	} else {
		sim_ctx_drain(ctx);
		ctx->is_alive = false;
	}
	pthread_mutex_unlock(&sim_lock);
	if (r == CUDA_SUCCESS && ctx_depth > 0 && ctx_stack[ctx_depth - 1] == ctx)
		ctx_depth--;
	return r;
}

static CUresult check_ctx(CUcontext ctx)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	if (!sim_ctx_is_valid(ctx))
		r = CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	CUresult r = check_ctx(ctx);

	return r == CUDA_SUCCESS ? ctx_push(ctx) : r;
}

CUresult cuCtxPopCurrent(CUcontext *ret_ctx)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (ctx_depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	ctx_depth--;
	if (ret_ctx)
		*ret_ctx = ctx_stack[ctx_depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult r = ctx ? check_ctx(ctx) : sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ctx) {
		if (ctx_depth > 0)
			ctx_depth--;
		return CUDA_SUCCESS;
	}
	if (ctx_depth == 0)
		return ctx_push(ctx);
	ctx_stack[ctx_depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ret_ctx)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_ctx = ctx_depth > 0 ? ctx_stack[ctx_depth - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = ctx->dev;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	CUresult r = ctx ? check_ctx(ctx) : sim_enter_ctx(&ctx);

	if (r == CUDA_SUCCESS)
		*id = ctx->id;
	return r;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	CUresult r = ctx ? check_ctx(ctx) : sim_enter_ctx(&ctx);

	if (r == CUDA_SUCCESS)
		*version = 3020;
	return r;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	sim_ctx_drain(ctx);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}
