/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums tensors up on the first device, with the kernel as it lies in the library. Without a driver
 * or device, the exit status is 77. --about describes the device, as JSON; --most BYTES: we skip a
 * larger tensor, and also a tensor that the device has no room for.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/base/cuda_abi.h"
#include "agent/cuda/kernels.h"
#include "tests/gpu/sums.h"

#define NO_GPU 77
#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */
#define PIECE (UINT64_C(64) << 20)

/* clang-format off */
#define FUNCTIONS(X) \
	X(init, "cuInit", (unsigned flags)) \
	X(device_get, "cuDeviceGet", (CUdevice *device, int ordinal)) \
	X(device_name, "cuDeviceGetName", (char *name, int len, CUdevice device)) \
	X(driver_version, "cuDriverGetVersion", (int *version)) \
	X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext *ctx, CUdevice device)) \
	X(ctx_push, "cuCtxPushCurrent_v2", (CUcontext ctx)) \
	X(synchronize, "cuCtxSynchronize", (void)) \
	X(module_load, "cuModuleLoadData", (CUmodule *module, const void *image)) \
	X(module_unload, "cuModuleUnload", (CUmodule module)) \
	X(module_function, "cuModuleGetFunction", (CUfunction *fn, CUmodule module, const char *name)) \
	X(memory_alloc, "cuMemAlloc_v2", (CUdeviceptr *p, size_t bytes)) \
	X(memory_free, "cuMemFree_v2", (CUdeviceptr p)) \
	X(copy_in, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void *from, size_t bytes)) \
	X(host_register, "cuMemHostRegister_v2", (void *p, size_t bytes, unsigned flags)) \
	X(host_device_pointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr *dptr, void *p, unsigned flags)) \
	X(launch, "cuLaunchKernel", (CUfunction fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra))
/* clang-format on */

static struct {
#define X(member, name, params) CUresult(*member) params;
	FUNCTIONS(X)
#undef X
	CUmodule module;
	CUfunction summary;
	struct sums_result *result; /* a page that the device writes to */
	CUdeviceptr result_device;
	uint64_t most;
} device;

static bool has_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	bool ok = driver != NULL;

#define X(member, name, params) ok = ok && (*(void **)&device.member = dlsym(driver, name)) != NULL;
	FUNCTIONS(X)
#undef X
	return ok;
}

static int load(void)
{
	int r = device.module_load(&device.module, cw_kernel_image);

	return r ? r : device.module_function(&device.summary, device.module, "cw_summary");
}

/* 0, NO_GPU, or 1 with a word about it: a device that cannot be used is no reason to skip. */
static int open_device(int *ret_version, char name[128])
{
	CUdevice dev;
	CUcontext context;
	int r;

	if (!has_driver() || device.init(0) || device.device_get(&dev, 0))
		return NO_GPU;
	device.result = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (device.result == MAP_FAILED)
		return 1;
	r = device.driver_version(ret_version);
	r = r ? r : device.device_name(name, 128, dev);
	r = r ? r : device.primary_retain(&context, dev);
	r = r ? r : device.ctx_push(context);
	r = r ? r : device.host_register(device.result, 4096, CU_MEMHOSTREGISTER_DEVICEMAP);
	r = r ? r : device.host_device_pointer(&device.result_device, device.result, 0);
	r = r ? r : load();
	if (r)
		fprintf(stderr, "the driver answers %d\n", r);
	return r != 0;
}

/* A kernel that has seen a first NaN knows it for good: a module loaded anew does not. */
static int forget_first(void)
{
	int r = device.module_unload(device.module);

	return r ? r : load();
}

static int copy_in(CUdeviceptr to, const char *from, uint64_t bytes)
{
	int r = 0;

	for (uint64_t at = 0; at < bytes && r == 0; at += PIECE)
		r = device.copy_in(to + at, from + at, bytes - at < PIECE ? bytes - at : PIECE);
	return r;
}

static int run(struct cw_summary_args *args, uint32_t blocks)
{
	void *params[] = { args };
	int r = device.launch(device.summary, blocks, 1, 1, CW_SUM_THREADS, 1, 1, 0, NULL, params,
			      NULL);

	return r ? r : device.synchronize();
}

static int on_device(const struct sums_case *c, struct cw_summary_args *args,
		     struct sums_result *ret)
{
	uint64_t bytes = c->elements * cw_sum_bytes(c->dtype), aside = args->data % 8;
	const char *data = (const char *)(uintptr_t)args->data;
	CUdeviceptr memory;
	int r;

	if (bytes > device.most)
		return SUMS_NOT_COLLECTED;
	r = device.memory_alloc(&memory, bytes + 16);
	if (r)
		return r == OUT_OF_MEMORY ? SUMS_NOT_COLLECTED : r;
	memset(device.result, 0, sizeof(*device.result));
	args->data = memory + aside;
	args->tensor_stats = 0;
	args->out = device.result_device + offsetof(struct sums_result, out);
	args->first_out = device.result_device + offsetof(struct sums_result, first);
	r = copy_in(args->data, data, bytes);
	r = r ? r : run(args, c->blocks);
	args->out = args->first_out = 0;
	args->tensor_stats = device.result_device + offsetof(struct sums_result, tensor_stats);
	r = r ? r : run(args, c->blocks);
	*ret = *device.result;
	if (r == 0 && ret->first.publish)
		r = forget_first();
	(void)device.memory_free(memory); /* a context that has ended says so with the next call */
	return r;
}

int main(int argc, char **argv)
{
	static const sums_engine_fn engines[] = { on_device };
	char name[128] = "";
	int version = 0, r;

	if (!cw_kernel_image_bytes) {
		fputs("built without nvcc and clang: there is no kernel\n", stderr);
		return 1;
	}
	device.most = UINT64_MAX;
	if (argc == 3 && strcmp(argv[1], "--most") == 0)
		device.most = strtoull(argv[2], NULL, 10);
	r = open_device(&version, name);
	if (r != 0)
		return r;
	if (argc == 2 && strcmp(argv[1], "--about") == 0) {
		printf("{\"device\": \"%s\", \"driver\": %d, \"kernel\": \"%s\"}\n", name, version,
		       cw_kernel_image[0] == '/' ? "ptx" : "fatbin");
		return 0;
	}
	return sums_serve(engines, 1);
}
