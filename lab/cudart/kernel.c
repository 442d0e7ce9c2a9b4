/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels. Compiled device code registers its image and its kernels from constructors; a kernel is
 * named by the address of its host function. The module is loaded into the context that first
 * launches something of it, as lazy loading does.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/cudart/runtime.h"

#define FATBIN_WRAPPER_MAGIC 0x466243b1
/* Some dozens are NCCL's. */
#define KERNELS_MAX 1024
#define IMAGES_MAX 16

/* What __cudaRegisterFatBinary() gets. */
struct fatbin_wrapper {
	int magic;
	int version;
	const void *data;
	const char *file;
};

struct image {
	const void *data;
	CUmodule module; /* NULL until something of it is used */
};

struct kernel {
	const void *symbol;
	const char *name;
	struct image *image;
	CUfunction fn;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct image images[IMAGES_MAX];
static unsigned int image_count;
static struct kernel kernels[KERNELS_MAX];
static unsigned int kernel_count;

void **__cudaRegisterFatBinary(void *fatbin)
{
	const struct fatbin_wrapper *w = fatbin;
	struct image *image = NULL;

	pthread_mutex_lock(&lock);
	if (w->magic == FATBIN_WRAPPER_MAGIC && image_count < IMAGES_MAX) {
		image = &images[image_count++];
		image->data = w->data;
	}
	pthread_mutex_unlock(&lock);
	if (!image)
		fprintf(stderr, "laboratory runtime: device code that is not for it\n");
	return (void **)image;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
}

void __cudaRegisterFunction(void **handle, const char *symbol, char *device_name, const char *name,
			    int thread_limit, void *tid, void *bid, void *bdim, void *gdim,
			    int *warp_size)
{
	if (!handle)
		return;
	pthread_mutex_lock(&lock);
	if (kernel_count < KERNELS_MAX)
		kernels[kernel_count++] = (struct kernel){ .symbol = symbol,
							   .name = name,
							   .image = (struct image *)handle };
	else
		fprintf(stderr, "laboratory runtime: kernel %s is one too many\n", name);
	pthread_mutex_unlock(&lock);
}

/* Lock held. */
static CUresult load(struct kernel *k)
{
	CUresult r = CUDA_SUCCESS;

	if (k->fn)
		return CUDA_SUCCESS;
	if (!k->image->module)
		r = rt_driver.p_cuModuleLoadData(&k->image->module, k->image->data);
	if (r == CUDA_SUCCESS)
		r = rt_driver.p_cuModuleGetFunction(&k->fn, k->image->module, k->name);
	return r;
}

static CUresult find(const void *symbol, CUfunction *ret_fn)
{
	CUresult r = rt_enter();
	struct kernel *k = NULL;

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < kernel_count && !k; i++) {
		if (kernels[i].symbol == symbol)
			k = &kernels[i];
	}
	r = k ? load(k) : (CUresult)cudaErrorInvalidDeviceFunction;
	if (r == CUDA_SUCCESS)
		*ret_fn = k->fn;
	pthread_mutex_unlock(&lock);
	return r;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *fn, const void *symbol)
{
	return rt_result(fn ? find(symbol, fn) : CUDA_ERROR_INVALID_VALUE);
}

/* Host code has neither registers nor shared memory to speak of. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *symbol)
{
	CUfunction fn;
	CUresult r = attr ? find(symbol, &fn) : CUDA_ERROR_INVALID_VALUE;

	if (r == CUDA_SUCCESS)
		*attr = (struct cudaFuncAttributes){ .maxThreadsPerBlock = 1024,
						     .maxDynamicSharedSizeBytes = 227 << 10,
						     .binaryVersion = 90,
						     .ptxVersion = 90 };
	return rt_result(r);
}

cudaError_t cudaFuncSetAttribute(const void *symbol, int attr, int value)
{
	CUfunction fn;

	return rt_result(find(symbol, &fn));
}

cudaError_t cudaLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **args,
			     size_t shared_bytes, cudaStream_t stream)
{
	CUfunction fn;
	CUresult r = find(symbol, &fn);

	if (r == CUDA_SUCCESS)
		r = rt_driver.p_cuLaunchKernel(fn, grid.x, grid.y, grid.z, block.x, block.y,
					       block.z, (unsigned int)shared_bytes, stream, args,
					       NULL);
	return rt_result(r);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *symbol, void **args)
{
	if (!config)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	return cudaLaunchKernel(symbol, config->gridDim, config->blockDim, args,
				config->dynamicSmemBytes, config->stream);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user_data)
{
	return RT_CALL(cuLaunchHostFunc, stream, fn, user_data);
}
