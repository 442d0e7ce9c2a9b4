/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are host functions, memory in the order of a stream, devices by their place. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <pthread.h>
#include <string.h>

#include "lab/sim/cuda/host_image.h"

#define BLOCKS 4u

struct params {
	pthread_barrier_t *meeting;
	uint32_t *sums;
	uint32_t addend;
};

static CUmodule module;

static void setup(void)
{
	CUcontext ctx;

	cr_assert_eq(cuInit(0), CUDA_SUCCESS);
	cr_assert_eq(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
	cr_assert_eq(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
}

static void teardown(void)
{
	if (module)
		cr_assert_eq(cuModuleUnload(module), CUDA_SUCCESS);
}

TestSuite(sim_kernels, .init = setup, .fini = teardown, .timeout = 300);

/* Ends only if all blocks run at the same time. */
static void meet(const void *param, unsigned int block, unsigned int blocks)
{
	const struct params *p = param;

	if (blocks > 1)
		pthread_barrier_wait(p->meeting);
	p->sums[block] += p->addend;
}

static CUfunction load_meet(void)
{
	static const struct sim_host_kernel kernels[] = {
		{ "other", 0, NULL },
		{ "meet", sizeof(struct params), meet },
	};
	static const struct sim_host_image image = { SIM_HOST_IMAGE_MAGIC, 2, kernels };
	CUfunction fn = NULL;

	cr_assert_eq(cuModuleLoadData(&module, &image), CUDA_SUCCESS);
	cr_assert_eq(cuModuleGetFunction(&fn, module, "missing"), CUDA_ERROR_NOT_FOUND);
	cr_assert_eq(cuModuleGetFunction(&fn, module, "meet"), CUDA_SUCCESS);
	return fn;
}

Test(sim_kernels, blocks_of_a_launch_run_at_the_same_time)
{
	uint32_t sums[BLOCKS] = { 0 };
	pthread_barrier_t meeting;
	struct params p = { &meeting, sums, 3 };
	void *params[] = { &p };
	CUfunction fn = load_meet();

	pthread_barrier_init(&meeting, NULL, BLOCKS);
	cr_assert_eq(cuLaunchKernel(fn, BLOCKS, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		     CUDA_SUCCESS);
	p.addend = 100; /* the parameter was taken at the launch */
	cr_assert_eq(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	for (unsigned int i = 0; i < BLOCKS; i++)
		cr_assert_eq(sums[i], 3, "block %u: %u", i, sums[i]);
}

Test(sim_kernels, takes_the_parameter_as_a_buffer)
{
	uint32_t sums[1] = { 0 };
	struct params p = { NULL, sums, 5 };
	size_t size = sizeof(p);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	CUlaunchConfig config = { .gridDimX = 1,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 512,
				  .blockDimY = 1,
				  .blockDimZ = 1 };
	CUfunction fn = load_meet();

	cr_assert_eq(cuLaunchKernelEx(&config, fn, NULL, extra), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	cr_assert_eq(sums[0], 5);
	size = sizeof(p) + 1;
	cr_assert_eq(cuLaunchKernelEx(&config, fn, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	cr_assert_eq(cuLaunchKernelEx(&config, fn, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	config.gridDimX = SIM_HOST_BLOCKS_MAX + 1;
	size = sizeof(p);
	cr_assert_eq(cuLaunchKernelEx(&config, fn, NULL, extra), CUDA_ERROR_NOT_SUPPORTED);
}

static void wait_for(void *arg)
{
	pthread_barrier_wait(arg);
}

Test(sim_kernels, frees_memory_when_the_stream_is_there)
{
	CUmemPoolProps props = { .location_id = 0 };
	pthread_barrier_t gate;
	CUmemoryPool pool;
	CUdeviceptr p;
	size_t size;

	pthread_barrier_init(&gate, NULL, 2);
	cr_assert_eq(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	cr_assert_eq(cuMemAllocFromPoolAsync(&p, 64, pool, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(NULL, wait_for, &gate), CUDA_SUCCESS);
	cr_assert_eq(cuMemFreeAsync(p + 8, NULL), CUDA_ERROR_INVALID_VALUE);
	cr_assert_eq(cuMemFreeAsync(p, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuMemGetAddressRange(NULL, &size, p), CUDA_SUCCESS, "freed too early");
	pthread_barrier_wait(&gate);
	cr_assert_eq(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	cr_assert_eq(cuMemGetAddressRange(NULL, &size, p), CUDA_ERROR_NOT_FOUND);
	cr_assert_eq(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

Test(sim_kernels, finds_a_device_by_its_place)
{
	CUdevice dev = -1;
	char id[16];
	int can = -1;

	cr_assert_eq(cuDeviceGetPCIBusId(id, sizeof(id), 3), CUDA_SUCCESS);
	cr_assert_eq(cuDeviceGetByPCIBusId(&dev, id), CUDA_SUCCESS);
	cr_assert_eq(dev, 3);
	cr_assert_eq(cuDeviceGetByPCIBusId(&dev, "0000:00:00.0"), CUDA_ERROR_INVALID_DEVICE);
	cr_assert_eq(cuDeviceGetByPCIBusId(&dev, "no place"), CUDA_ERROR_INVALID_VALUE);
	cr_assert_eq(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
	cr_assert_eq(can, 0);
}

Test(sim_kernels, run_with_what_they_were_captured_with_at_each_launch_of_a_graph)
{
	uint32_t sums[1] = { 0 };
	struct params p = { NULL, sums, 3 };
	void *params[] = { &p };
	CUfunction fn = load_meet();
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	cr_assert_eq(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchKernel(fn, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	p.addend = 100;
	cr_assert_eq(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
	cr_assert_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
	cr_assert_eq(sums[0], 9);
	cr_assert_eq(cuGraphExecDestroy(exec), CUDA_SUCCESS);
}
