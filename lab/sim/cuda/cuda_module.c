/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the simulated device. It cannot run GPU code, so it knows some kernels by name and
 * does their work on the CPU. We accept any image that begins like a GPU image. An image of host
 * functions (host_image.h) contains its own kernels.
 *
 * A kernel with an invalid access makes a real context unusable. Here it kills the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/sim/cuda/cuda_sim.h"
#include "lab/sim/cuda/host_image.h"
#include "record/summary.h"

#define FATBIN_MAGIC 0xba55ed50u

struct CUfunc_st {
	const char *name;
	size_t param_bytes;
	void (*run)(const void *param);
	const struct sim_host_kernel *host; /* replaces `run` for a kernel of the program */
};

struct CUmod_st {
	struct CUctx_st *ctx;
	size_t count;
	struct CUfunc_st functions[]; /* the kernels of a host image */
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
	if (args.tensor_stats)
		must_be_visible(args.tensor_stats, sizeof(struct cw_sum_tensor_stats),
				"cw_summary");
	else
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
	{ "cw_summary", sizeof(struct cw_summary_args), run_summary, NULL },
	{ "cw_stamp", sizeof(uint64_t), run_stamp, NULL },
};

static const struct sim_host_image *host_image(const void *image)
{
	const struct sim_host_image *h = image;
	uint32_t magic;

	memcpy(&magic, image, sizeof(magic));
	return magic == SIM_HOST_IMAGE_MAGIC ? h : NULL;
}

static bool image_is_valid(const void *image)
{
	static const char ptx[] = "//";
	uint32_t magic;

	if (memcmp(image, ptx, sizeof(ptx) - 1) == 0)
		return true;
	memcpy(&magic, image, sizeof(magic));
	return magic == FATBIN_MAGIC || magic == SIM_HOST_IMAGE_MAGIC;
}

CUresult cuModuleLoadData(CUmodule *ret_module, const void *image)
{
	const struct sim_host_image *host;
	struct CUctx_st *ctx;
	struct CUmod_st *m;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!image_is_valid(image))
		return CUDA_ERROR_INVALID_IMAGE;
	host = host_image(image);
	m = calloc(1, sizeof(*m) + (host ? host->count : 0) * sizeof(m->functions[0]));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->ctx = ctx;
	m->count = host ? host->count : 0;
	for (size_t i = 0; i < m->count; i++) {
		m->functions[i].name = host->kernels[i].name;
		m->functions[i].param_bytes = host->kernels[i].param_bytes;
		m->functions[i].host = &host->kernels[i];
	}
	*ret_module = m;
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
	for (size_t i = 0; i < module->count; i++) {
		if (strcmp(module->functions[i].name, name) == 0) {
			*ret_fn = &module->functions[i];
			return CUDA_SUCCESS;
		}
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) == 0) {
			*ret_fn = &functions[i];
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

struct sim_launch {
	unsigned int refs; /* guarded by sim_lock */
	const struct CUfunc_st *fn;
	unsigned int blocks;
	_Alignas(16) char param[]; /* the parameter, in the layout of the program's kernel */
};

struct block {
	const struct sim_launch *launch;
	unsigned int index;
	pthread_t thread;
};

static void *run_block(void *arg)
{
	const struct block *b = arg;
	const struct sim_launch *l = b->launch;

	l->fn->host->run(l->param, b->index, l->blocks);
	return NULL;
}

/*
 * Runs all blocks at once, each in a thread. A block waits for kernels of other processes. If
 * blocks ran one after the other, this wait might never end.
 */
static void run_blocks(const struct sim_launch *l)
{
	struct block blocks[SIM_HOST_BLOCKS_MAX];

	for (unsigned int i = 0; i < l->blocks; i++) {
		blocks[i] = (struct block){ .launch = l, .index = i };
		if (i > 0 && pthread_create(&blocks[i].thread, NULL, run_block, &blocks[i]) != 0) {
			fprintf(stderr, "simulated device: no thread for block %u of kernel %s\n",
				i, l->fn->name);
			abort();
		}
		if (i > 0)
			pthread_setname_np(blocks[i].thread, "cuda-block");
	}
	run_block(&blocks[0]);
	for (unsigned int i = 1; i < l->blocks; i++)
		pthread_join(blocks[i].thread, NULL);
}

void sim_launch_run(const struct sim_launch *l)
{
	if (l->fn->host)
		run_blocks(l);
	else
		l->fn->run(l->param);
}

void sim_launch_ref(struct sim_launch *l)
{
	l->refs++;
}

void sim_launch_unref(struct sim_launch *l)
{
	if (--l->refs == 0)
		free(l);
}

/* Copies the kernel's parameter, from its address or from a buffer that states its size. */
static CUresult take_param(const struct CUfunc_st *fn, void **params, void **extra, void *ret_param)
{
	const void *buffer = NULL;
	size_t size = 0;

	if (params && !extra) {
		memcpy(ret_param, params[0], fn->param_bytes);
		return CUDA_SUCCESS;
	}
	if (params || !extra)
		return CUDA_ERROR_INVALID_VALUE;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (!buffer || size > fn->param_bytes || (!fn->host && size != fn->param_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(ret_param, buffer, size);
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	struct sim_item item = { .kind = SIM_ITEM_KERNEL };
	struct CUstream_st *s;
	struct sim_launch *l;
	CUresult r;

	if (!fn || !gx || !gy || !gz || !bx || !by || !bz || (uint64_t)bx * by * bz > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (fn->host && (uint64_t)gx * gy * gz > SIM_HOST_BLOCKS_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	l = calloc(1, sizeof(*l) + fn->param_bytes);
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->refs = 1;
	l->fn = fn;
	l->blocks = gx * gy * gz;
	/* copy the parameter at the launch, as the real driver does */
	r = take_param(fn, params, extra, l->param);
	if (r == CUDA_SUCCESS)
		r = sim_stream_lock_in_ctx(stream, &s);
	if (r == CUDA_SUCCESS) {
		item.launch = l;
		r = sim_stream_submit(s, &item);
		pthread_mutex_unlock(&sim_lock);
	}
	if (r != CUDA_SUCCESS)
		free(l);
	return r;
}

/* We ignore the attributes, which request a placement of blocks. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction fn, void **params, void **extra)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchKernel(fn, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
			      c->blockDimZ, c->sharedMemBytes, c->hStream, params, extra);
}
