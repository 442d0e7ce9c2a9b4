/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the laboratory's CUDA runtime, libcudart.so.13. Like NVIDIA's, it opens the driver
 * at its first call and asks cuGetProcAddress for every function. It keeps a device per thread and
 * makes the primary context current on demand. Any thread may call any function.
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>

#define RUNTIME_VERSION 13000

#define DRIVER_FUNCTIONS(X)                                                                        \
	X(cuInit)                                                                                  \
	X(cuDriverGetVersion)                                                                      \
	X(cuGetErrorString)                                                                        \
	X(cuGetErrorName)                                                                          \
	X(cuDeviceGetCount)                                                                        \
	X(cuDeviceGetName)                                                                         \
	X(cuDeviceGetAttribute)                                                                    \
	X(cuDeviceGetPCIBusId)                                                                     \
	X(cuDeviceGetByPCIBusId)                                                                   \
	X(cuDeviceCanAccessPeer)                                                                   \
	X(cuDeviceTotalMem)                                                                        \
	X(cuDevicePrimaryCtxRetain)                                                                \
	X(cuCtxGetCurrent)                                                                         \
	X(cuCtxSetCurrent)                                                                         \
	X(cuCtxGetDevice)                                                                          \
	X(cuCtxSynchronize)                                                                        \
	X(cuCtxGetStreamPriorityRange)                                                             \
	X(cuMemAlloc)                                                                              \
	X(cuMemFree)                                                                               \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuMemHostRegister)                                                                       \
	X(cuMemHostUnregister)                                                                     \
	X(cuMemHostGetDevicePointer)                                                               \
	X(cuMemGetInfo)                                                                            \
	X(cuIpcGetMemHandle)                                                                       \
	X(cuIpcOpenMemHandle)                                                                      \
	X(cuIpcCloseMemHandle)                                                                     \
	X(cuMemcpy)                                                                                \
	X(cuMemcpyAsync)                                                                           \
	X(cuMemsetD8)                                                                              \
	X(cuMemsetD8Async)                                                                         \
	X(cuMemAllocAsync)                                                                         \
	X(cuMemAllocFromPoolAsync)                                                                 \
	X(cuMemFreeAsync)                                                                          \
	X(cuMemPoolCreate)                                                                         \
	X(cuMemPoolDestroy)                                                                        \
	X(cuMemPoolSetAttribute)                                                                   \
	X(cuPointerGetAttribute)                                                                   \
	X(cuStreamCreateWithPriority)                                                              \
	X(cuStreamDestroy)                                                                         \
	X(cuStreamSynchronize)                                                                     \
	X(cuStreamQuery)                                                                           \
	X(cuStreamWaitEvent)                                                                       \
	X(cuStreamGetId)                                                                           \
	X(cuStreamGetFlags)                                                                        \
	X(cuStreamGetPriority)                                                                     \
	X(cuStreamIsCapturing)                                                                     \
	X(cuStreamGetCaptureInfo)                                                                  \
	X(cuStreamBeginCapture)                                                                    \
	X(cuStreamEndCapture)                                                                      \
	X(cuStreamUpdateCaptureDependencies)                                                       \
	X(cuThreadExchangeStreamCaptureMode)                                                       \
	X(cuGraphAddDependencies)                                                                  \
	X(cuGraphAddEventRecordNode)                                                               \
	X(cuGraphRetainUserObject)                                                                 \
	X(cuUserObjectCreate)                                                                      \
	X(cuUserObjectRelease)                                                                     \
	X(cuGraphInstantiateWithFlags)                                                             \
	X(cuGraphLaunch)                                                                           \
	X(cuGraphExecDestroy)                                                                      \
	X(cuGraphDestroy)                                                                          \
	X(cuGraphGetNodes)                                                                         \
	X(cuEventCreate)                                                                           \
	X(cuEventDestroy)                                                                          \
	X(cuEventRecord)                                                                           \
	X(cuEventQuery)                                                                            \
	X(cuEventSynchronize)                                                                      \
	X(cuEventElapsedTime)                                                                      \
	X(cuLaunchHostFunc)                                                                        \
	X(cuLaunchKernel)                                                                          \
	X(cuLaunchKernelEx)                                                                        \
	X(cuModuleLoadData)                                                                        \
	X(cuModuleGetFunction)

struct driver {
	CUresult (*cuGetProcAddress_v2)(const char *symbol, void **fn, int version,
					cuuint64_t flags, CUdriverProcAddressQueryResult *status);
#define FIELD(name) __typeof__(name) *p_##name;
	DRIVER_FUNCTIONS(FIELD)
#undef FIELD
};

extern struct driver rt_driver;

/*
 * Opens the driver and initialises it. Returns CUDA_SUCCESS or the driver's error. Later calls
 * cost nothing.
 */
CUresult rt_open(void);
/*
 * The same, and makes a context current: the caller's, or the primary one of the thread's device.
 */
CUresult rt_enter(void);
/*
 * Keeps an error for cudaGetLastError() and returns it. Runtime and driver have the same numbers.
 */
cudaError_t rt_result(CUresult result);
/* Prints on stderr, once per name, that the function is missing. */
cudaError_t rt_unsupported(const char *name);

/* A driver function after rt_enter(), or after rt_open(). The macro stringifies the name. */
#define RT_CALL(name, ...)                                                                         \
	({                                                                                         \
		CUresult r_ = rt_enter();                                                          \
		rt_result(r_ == CUDA_SUCCESS ? rt_driver.p_##name(__VA_ARGS__) : r_);              \
	})
#define RT_CALL_OPEN(name, ...)                                                                    \
	({                                                                                         \
		CUresult r_ = rt_open();                                                           \
		rt_result(r_ == CUDA_SUCCESS ? rt_driver.p_##name(__VA_ARGS__) : r_);              \
	})
