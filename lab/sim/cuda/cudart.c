/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small CUDA runtime. It imitates the way in which a real one calls the driver, and has few of
 * its features. Like the real one, static or shared, it opens the driver at its first call. It gets
 * every function from cuGetProcAddress, by name and by its build version. With CUDART_SIM_VERSION
 * 11040 it calls the first version of cuGetProcAddress, like CUDA 11. It then gets functions with
 * the parameters of CUDA 11.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

#ifndef CUDART_SIM_VERSION
#define CUDART_SIM_VERSION 12040
#endif

static struct {
	int (*begin_capture)(cudaStream_t stream, int mode);
	int (*end_capture)(cudaStream_t stream, cudaGraph_t *graph);
#if CUDART_SIM_VERSION >= 12000
	int (*instantiate)(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
#else
	int (*instantiate)(cudaGraphExec_t *exec, cudaGraph_t graph, void **error_node, char *log,
			   size_t log_size);
#endif
	int (*launch)(cudaGraphExec_t exec, cudaStream_t stream);
	int (*exec_destroy)(cudaGraphExec_t exec);
	int (*destroy)(cudaGraph_t graph);
} driver;

static int is_complete;

static const struct {
	const char *name;
	void **slot;
} functions[] = {
	{ "cuStreamBeginCapture", (void **)&driver.begin_capture },
	{ "cuStreamEndCapture", (void **)&driver.end_capture },
#if CUDART_SIM_VERSION >= 12000
	{ "cuGraphInstantiateWithFlags", (void **)&driver.instantiate },
#else
	{ "cuGraphInstantiate", (void **)&driver.instantiate },
#endif
	{ "cuGraphLaunch", (void **)&driver.launch },
	{ "cuGraphExecDestroy", (void **)&driver.exec_destroy },
	{ "cuGraphDestroy", (void **)&driver.destroy },
};

static void load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int (*ask_v1)(const char *name, void **fn, int version, uint64_t flags);
	int (*ask_v2)(const char *name, void **fn, int version, uint64_t flags, int *status);
	int status;

	if (!lib)
		return;
	*(void **)&ask_v1 = dlsym(lib, "cuGetProcAddress");
	*(void **)&ask_v2 = dlsym(lib, "cuGetProcAddress_v2");
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void **slot = functions[i].slot;
		int r = CUDART_SIM_VERSION >= 12000
				? ask_v2(functions[i].name, slot, CUDART_SIM_VERSION, 0, &status)
				: ask_v1(functions[i].name, slot, CUDART_SIM_VERSION, 0);

		if (r != 0 || !*slot)
			return;
	}
	is_complete = 1;
}

static int is_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, load);
	return is_complete;
}

#define CALL(...) (is_ready() ? (cudaError_t)__VA_ARGS__ : cudaErrorInitializationError)

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
	return CALL(driver.begin_capture(stream, (int)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	return CALL(driver.end_capture(stream, graph));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
#if CUDART_SIM_VERSION >= 12000
	return CALL(driver.instantiate(exec, graph, flags));
#else
	return CALL(driver.instantiate(exec, graph, NULL, NULL, 0));
#endif
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return CALL(driver.launch(exec, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	return CALL(driver.exec_destroy(exec));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return CALL(driver.destroy(graph));
}
