/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the driver, and the memory of errors. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lab/nccl/cudart/runtime.h"

#define UNSUPPORTED_MAX 32

struct driver rt_driver;

static CUresult open_result = CUDA_ERROR_NOT_INITIALIZED;
static __thread cudaError_t last_error;

static const struct {
	const char *name;
	void **slot;
} functions[] = {
#define ROW(name) { #name, (void **)&rt_driver.p_##name },
	DRIVER_FUNCTIONS(ROW)
#undef ROW
};

static void open_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return;
	*(void **)&rt_driver.cuGetProcAddress_v2 = dlsym(lib, "cuGetProcAddress_v2");
	if (!rt_driver.cuGetProcAddress_v2)
		return;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		CUdriverProcAddressQueryResult status;
		CUresult r = rt_driver.cuGetProcAddress_v2(functions[i].name, functions[i].slot,
							   RUNTIME_VERSION, 0, &status);

		if (r != CUDA_SUCCESS || !*functions[i].slot) {
			fprintf(stderr, "laboratory runtime: the driver has no %s\n",
				functions[i].name);
			return;
		}
	}
	open_result = rt_driver.p_cuInit(0);
}

CUresult rt_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, open_driver);
	return open_result;
}

cudaError_t rt_result(CUresult result)
{
	/* "Not ready" is an answer, not an error. */
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		last_error = (cudaError_t)result;
	return (cudaError_t)result;
}

cudaError_t rt_unsupported(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char *said[UNSUPPORTED_MAX];
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < UNSUPPORTED_MAX && said[i] && strcmp(said[i], name) != 0)
		i++;
	if (i < UNSUPPORTED_MAX && !said[i]) {
		said[i] = name;
		fprintf(stderr, "laboratory runtime: %s is not supported\n", name);
	}
	pthread_mutex_unlock(&lock);
	return rt_result(CUDA_ERROR_NOT_SUPPORTED);
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t e = last_error;

	last_error = cudaSuccess;
	return e;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

const char *cudaGetErrorString(cudaError_t error)
{
	const char *text = NULL;

	if (rt_driver.p_cuGetErrorString)
		(void)rt_driver.p_cuGetErrorString((CUresult)error, &text);
	return text ? text : "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
	const char *name = NULL;

	if (rt_driver.p_cuGetErrorName)
		(void)rt_driver.p_cuGetErrorName((CUresult)error, &name);
	return name ? name : "unrecognized error code";
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **fn, unsigned int version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CUresult r = rt_open();

	if (r == CUDA_SUCCESS)
		r = rt_driver.cuGetProcAddress_v2(symbol, fn, (int)version, flags, &found);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	return rt_result(r);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, fn, RUNTIME_VERSION, flags, status);
}
