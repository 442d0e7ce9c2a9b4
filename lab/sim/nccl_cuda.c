/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access of the simulated NCCL to the driver. It uses only public functions, looked up by name, so
 * it cannot distinguish a real driver from the simulated one. The first use of a device opens
 * libcuda.so.1, as in real NCCL. So a program can make a unique id without a driver.
 */
#include "lab/sim/nccl_cuda.h"

#include <dlfcn.h>

#include "lab/sim/nccl_sim.h"

static struct sim_cuda table;
static bool is_usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	const struct {
		const char *name;
		void **slot;
	} names[] = {
		{ "cuInit", (void **)&table.init },
		{ "cuCtxGetCurrent", (void **)&table.get_ctx },
		{ "cuCtxSetCurrent", (void **)&table.set_ctx },
		{ "cuCtxPushCurrent_v2", (void **)&table.push_ctx },
		{ "cuCtxPopCurrent_v2", (void **)&table.pop_ctx },
		{ "cuCtxGetDevice", (void **)&table.get_device },
		{ "cuDeviceGetCount", (void **)&table.device_count },
		{ "cuDevicePrimaryCtxRetain", (void **)&table.retain_primary },
		{ "cuLaunchHostFunc", (void **)&table.launch_host_fn },
		{ "cuEventCreate", (void **)&table.event_create },
		{ "cuEventDestroy_v2", (void **)&table.event_destroy },
		{ "cuEventRecord", (void **)&table.event_record },
		{ "cuStreamWaitEvent", (void **)&table.wait_event },
		{ "cuStreamIsCapturing", (void **)&table.is_capturing },
		{ "cuMemAlloc_v2", (void **)&table.mem_alloc },
		{ "cuMemFree_v2", (void **)&table.mem_free },
		{ "cuMemcpyDtoH_v2", (void **)&table.memcpy_dtoh },
	};
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		(void)sim_fail(ncclUnhandledCudaError, "no CUDA driver: %s", dlerror());
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*names[i].slot = dlsym(lib, names[i].name);
		if (!*names[i].slot) {
			(void)sim_fail(ncclUnhandledCudaError, "driver lacks %s", names[i].name);
			return;
		}
	}
	if (table.init(0) != CUDA_SUCCESS) {
		(void)sim_fail(ncclUnhandledCudaError, "cuInit failed");
		return;
	}
	is_usable = true;
}

const struct sim_cuda *sim_cuda(void)
{
	pthread_once(&once, load);
	return is_usable ? &table : NULL;
}

ncclResult_t sim_cuda_current(CUcontext *ret_ctx, int *ret_dev)
{
	const struct sim_cuda *cuda = sim_cuda();
	CUcontext ctx = NULL;

	if (!cuda)
		return ncclUnhandledCudaError;
	if (cuda->get_ctx(&ctx) != CUDA_SUCCESS)
		return sim_fail(ncclUnhandledCudaError, "cuCtxGetCurrent failed");
	/* The CUDA runtime does the same on a thread's first call. */
	if (!ctx &&
	    (cuda->retain_primary(&ctx, 0) != CUDA_SUCCESS || cuda->set_ctx(ctx) != CUDA_SUCCESS))
		return sim_fail(ncclUnhandledCudaError, "no context is current");
	if (cuda->get_device(ret_dev) != CUDA_SUCCESS)
		return sim_fail(ncclUnhandledCudaError, "cuCtxGetDevice failed");
	*ret_ctx = ctx;
	return ncclSuccess;
}

bool sim_cuda_is_captured(CUstream stream)
{
	const struct sim_cuda *cuda = sim_cuda();
	CUstreamCaptureStatus status;

	return cuda && cuda->is_capturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}
