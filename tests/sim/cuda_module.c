/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the simulated device: it cannot run code of a GPU, so it knows some kernels by name
 * and does on the CPU what they do. An image that has begun like one is taken for one.
 *
 * A kernel that touches memory it must not ends a real context for good; here it ends the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/summary.h"
#include "tests/sim/cuda_sim.h"

#define FATBIN_MAGIC 0xba55ed50u

struct CUmod_st {
	struct CUctx_st *ctx;
};

struct CUfunc_st {
	const char *name;
	size_t param_bytes;
	void (*run)(const void *param);
};

static void must_be_visible(CUdeviceptr address, size_t bytes, const char *kernel)
{
	bool is_visible;

	pthread_mutex_lock(&sim_lock);
	is_visible = sim_memory_is_device_visible(address, bytes);
	pthread_mutex_unlock(&sim_lock);
	if (is_visible)
		return;
	fprintf(stderr, "simulated device: kernel %s touches %zu bytes at 0x%llx: not its memory\n",
		kernel, bytes, (unsigned long long)address);
	abort();
}

static void run_summary(const void *param)
{
	struct cw_summary_args args;

	memcpy(&args, param, sizeof(args));
	must_be_visible(args.data, args.elements * cw_sum_bytes(args.dtype), "cw_summary");
	must_be_visible(args.out, sizeof(struct cw_rec_summary), "cw_summary");
	if (args.first_out)
		must_be_visible(args.first_out, sizeof(struct cw_rec_summary), "cw_summary");
	cw_summary_run(&args);
}

static void run_stamp(const void *param)
{
	struct timespec ts;
	uint64_t where;

	memcpy(&where, param, sizeof(where));
	must_be_visible(where, sizeof(where), "cw_stamp");
	clock_gettime(CLOCK_MONOTONIC, &ts);
	__atomic_store_n((uint64_t *)(uintptr_t)where,
			 (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec,
			 __ATOMIC_RELEASE);
}

static struct CUfunc_st functions[] = {
	{ "cw_summary", sizeof(struct cw_summary_args), run_summary },
	{ "cw_stamp", sizeof(uint64_t), run_stamp },
};

CUresult cuModuleLoadData(CUmodule *ret_module, const void *image)
{
	static const char ptx[] = "//";
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);
	uint32_t magic;

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(image, ptx, sizeof(ptx) - 1) != 0) {
		memcpy(&magic, image, sizeof(magic));
		if (magic != FATBIN_MAGIC)
			return CUDA_ERROR_INVALID_IMAGE;
	}
	*ret_module = malloc(sizeof(**ret_module));
	if (!*ret_module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*ret_module)->ctx = ctx;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r == CUDA_SUCCESS)
		free(module);
	return r;
}

CUresult cuModuleGetFunction(CUfunction *ret_fn, CUmodule module, const char *name)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_fn || !module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) == 0) {
			*ret_fn = &functions[i];
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

struct launch {
	const struct CUfunc_st *fn;
	char param[];
};

static void run_launch(void *arg)
{
	struct launch *l = arg;

	l->fn->run(l->param);
	free(l);
}

CUresult cuLaunchKernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	struct launch *l;
	CUresult r;

	if (!fn || !params || extra || !gx || !gy || !gz || !bx || !by || !bz ||
	    (uint64_t)bx * by * bz > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	l = malloc(sizeof(*l) + fn->param_bytes);
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->fn = fn;
	memcpy(l->param, params[0], fn->param_bytes); /* as the real one: taken at the launch */
	r = cuLaunchHostFunc(stream, run_launch, l);
	if (r != CUDA_SUCCESS)
		free(l);
	return r;
}
