/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels. Compiled device code registers its image and its kernels from constructors. The address
 * of its host function identifies a kernel, and is its handle, too. We load a module into the
 * context that launches one of its kernels first, as lazy loading does.
 *
 * We note images with code of a real GPU but never load them: PyTorch registers a hundred thousand
 * kernels. A launch of one of them gets an error, and we print its name.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/nccl/cudart/runtime.h"
#include "lab/sim/cuda/host_image.h"

#define FATBIN_WRAPPER_MAGIC 0x466243b1
/*
 * Limit of nested launches (a launch whose arguments contain a launch). No program nests them as
 * deeply.
 */
#define CONFIGURATIONS_MAX 8

/* The argument of __cudaRegisterFatBinary(). */
struct fatbin_wrapper {
	int magic;
	int version;
	const void *data;
	const char *file;
};

struct image {
	const void *data;
	bool is_foreign; /* code of a real GPU */
	CUmodule module; /* NULL until the first use */
};

struct kernel {
	const void *symbol;
	const char *name;
	struct image *image;
	CUfunction fn;
};

/* The configuration of a launch, from between its <<<>>>. */
struct configuration {
	dim3 grid;
	dim3 block;
	size_t shared_bytes;
	cudaStream_t stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels; /* by symbol, if is_sorted */
static size_t kernel_count, kernel_room;
static bool is_sorted;
static __thread struct configuration configurations[CONFIGURATIONS_MAX];
static __thread unsigned int configuration_count;

void **__cudaRegisterFatBinary(void *fatbin)
{
	const struct fatbin_wrapper *w = fatbin;
	struct image *image = NULL;
	uint32_t magic;

	if (w->magic == FATBIN_WRAPPER_MAGIC)
		image = calloc(1, sizeof(*image));
	if (!image) {
		fprintf(stderr, "laboratory runtime: device code that is not for it\n");
		return NULL;
	}
	memcpy(&magic, w->data, sizeof(magic));
	image->data = w->data;
	image->is_foreign = magic != SIM_HOST_IMAGE_MAGIC;
	return (void **)image;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
}

/* Compiled code calls this before it needs a loaded module; our code never does. */
char __cudaInitModule(void **handle)
{
	return 0;
}

/* Lock held. */
static bool make_room(void)
{
	size_t room = kernel_room ? 2 * kernel_room : 256;
	struct kernel *more;

	if (kernel_count < kernel_room)
		return true;
	more = realloc(kernels, room * sizeof(*more));
	if (!more)
		return false;
	kernels = more;
	kernel_room = room;
	return true;
}

void __cudaRegisterFunction(void **handle, const char *symbol, char *device_name, const char *name,
			    int thread_limit, void *tid, void *bid, void *bdim, void *gdim,
			    int *warp_size)
{
	if (!handle)
		return;
	pthread_mutex_lock(&lock);
	if (make_room()) {
		kernels[kernel_count++] = (struct kernel){ .symbol = symbol,
							   .name = name,
							   .image = (struct image *)handle };
		is_sorted = false;
	} else {
		fprintf(stderr, "laboratory runtime: no memory for kernel %s\n", name);
	}
	pthread_mutex_unlock(&lock);
}

/* Variables of device code: a request for their address gets an error. */
void __cudaRegisterVar(void **handle, char *symbol, char *device_address, const char *name, int ext,
		       size_t size, int is_constant, int is_global)
{
}

static int by_symbol(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	return (x->symbol > y->symbol) - (x->symbol < y->symbol);
}

/* Lock held. */
static CUresult load(struct kernel *k)
{
	CUresult r = CUDA_SUCCESS;

	if (k->fn)
		return CUDA_SUCCESS;
	if (k->image->is_foreign) {
		fprintf(stderr, "laboratory runtime: kernel %s is code of a real GPU\n", k->name);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!k->image->module)
		r = rt_driver.p_cuModuleLoadData(&k->image->module, k->image->data);
	if (r == CUDA_SUCCESS)
		r = rt_driver.p_cuModuleGetFunction(&k->fn, k->image->module, k->name);
	return r;
}

static CUresult find(const void *symbol, CUfunction *ret_fn)
{
	const struct kernel key = { .symbol = symbol };
	CUresult r = rt_enter();
	struct kernel *k;

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	if (!is_sorted && kernel_count > 0)
		qsort(kernels, kernel_count, sizeof(*kernels), by_symbol);
	is_sorted = true;
	k = kernel_count > 0 ? bsearch(&key, kernels, kernel_count, sizeof(*kernels), by_symbol)
			     : NULL;
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

/* Host code uses no registers or shared memory worth mentioning. */
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

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
					 cudaStream_t stream)
{
	if (configuration_count == CONFIGURATIONS_MAX)
		return 1;
	configurations[configuration_count++] = (struct configuration){
		.grid = grid, .block = block, .shared_bytes = shared_bytes, .stream = stream
	};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
	const struct configuration *c;

	if (configuration_count == 0)
		return rt_result(CUDA_ERROR_INVALID_VALUE);
	c = &configurations[--configuration_count];
	*grid = c->grid;
	*block = c->block;
	*shared_bytes = c->shared_bytes;
	*(cudaStream_t *)stream = c->stream;
	return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *symbol)
{
	*kernel = (cudaKernel_t)symbol;
	return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared_bytes, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
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
