/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of the CUDA driver that the agent calls. Names and types are those of CUDA 11.7
 * and newer. A process that uses NCCL has loaded the driver already; the agent never loads it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef void *CUcontext;
typedef void *CUstream;
typedef void *CUmodule;
typedef void *CUfunction;
typedef uint64_t CUdeviceptr;
typedef int CUstreamCaptureMode;
typedef int CUstreamCaptureStatus;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,

	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,

	CU_MEMHOSTREGISTER_PORTABLE = 1,
	CU_MEMHOSTREGISTER_DEVICEMAP = 2,

	CU_STREAM_WRITE_VALUE_DEFAULT = 0, /* the device runs a memory barrier before the write */
};

/* X(member, name in libcuda.so.1, required, parameters) */
/* clang-format off */
#define CW_CUDA_FUNCTIONS(X) \
	X(ctx_get_current, "cuCtxGetCurrent", 1, (CUcontext *ctx)) \
	X(ctx_push, "cuCtxPushCurrent_v2", 1, (CUcontext ctx)) \
	X(ctx_pop, "cuCtxPopCurrent_v2", 1, (CUcontext *ctx)) \
	X(ctx_get_device, "cuCtxGetDevice", 1, (CUdevice *device)) \
	X(device_get, "cuDeviceGet", 0, (CUdevice *device, int ordinal)) \
	X(device_name, "cuDeviceGetName", 0, (char *name, int len, CUdevice device)) \
	X(primary_retain, "cuDevicePrimaryCtxRetain", 0, (CUcontext *ctx, CUdevice device)) \
	X(primary_release, "cuDevicePrimaryCtxRelease_v2", 0, (CUdevice device)) \
	X(host_register, "cuMemHostRegister_v2", 1, (void *p, size_t bytes, unsigned flags)) \
	X(host_device_pointer, "cuMemHostGetDevicePointer_v2", 1, (CUdeviceptr *dptr, void *p, unsigned flags)) \
	X(stream_write32, "cuStreamWriteValue32_v2", 1, (CUstream stream, CUdeviceptr addr, uint32_t value, unsigned flags)) \
	X(stream_is_capturing, "cuStreamIsCapturing", 0, (CUstream stream, CUstreamCaptureStatus *status)) \
	X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 0, (CUstreamCaptureMode *mode)) \
	X(module_load, "cuModuleLoadData", 0, (CUmodule *module, const void *image)) \
	X(module_function, "cuModuleGetFunction", 0, (CUfunction *fn, CUmodule module, const char *name)) \
	X(launch, "cuLaunchKernel", 0, (CUfunction fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)) \
	X(address_range, "cuMemGetAddressRange_v2", 0, (CUdeviceptr *base, size_t *bytes, CUdeviceptr p)) \
	X(driver_version, "cuDriverGetVersion", 0, (int *version))
/* clang-format on */
