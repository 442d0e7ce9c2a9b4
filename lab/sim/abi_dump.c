/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the numbers of the ABI according to the headers in the include path. We build it with our
 * headers and, if NVIDIA's are installed, also with those. Both outputs must be equal.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stddef.h>
#include <stdio.h>

#define VALUE(x) printf("%s %lld\n", #x, (long long)(x))
#define SIZE(t) printf("sizeof %s %zu\n", #t, sizeof(t))
#define FIELD(t, f) printf("%s.%s %zu\n", #t, #f, offsetof(t, f))
/* The symbol that a name stands for, as text. */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define SYMBOL(f) printf("%s is %s\n", #f, TEXT(f))

static void dump_cuda_results(void)
{
	VALUE(CUDA_SUCCESS);
	VALUE(CUDA_ERROR_INVALID_VALUE);
	VALUE(CUDA_ERROR_OUT_OF_MEMORY);
	VALUE(CUDA_ERROR_NOT_INITIALIZED);
	VALUE(CUDA_ERROR_NO_DEVICE);
	VALUE(CUDA_ERROR_INVALID_DEVICE);
	VALUE(CUDA_ERROR_INVALID_CONTEXT);
	VALUE(CUDA_ERROR_OPERATING_SYSTEM);
	VALUE(CUDA_ERROR_INVALID_HANDLE);
	VALUE(CUDA_ERROR_NOT_FOUND);
	VALUE(CUDA_ERROR_NOT_READY);
	VALUE(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
	VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED);
	VALUE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	VALUE(CUDA_ERROR_NOT_PERMITTED);
	VALUE(CUDA_ERROR_NOT_SUPPORTED);
	VALUE(CUDA_ERROR_UNKNOWN);
}

static void dump_runtime(void)
{
	VALUE(cudaErrorInvalidValue);
	VALUE(cudaErrorMemoryAllocation);
	VALUE(cudaErrorInitializationError);
	VALUE(cudaErrorInvalidDeviceFunction);
	VALUE(cudaErrorNoDevice);
	VALUE(cudaErrorInvalidDevice);
	VALUE(cudaErrorPeerAccessUnsupported);
	VALUE(cudaErrorSymbolNotFound);
	VALUE(cudaErrorNotReady);
	VALUE(cudaErrorNotSupported);
	VALUE(cudaErrorUnknown);
	VALUE(cudaMemcpyDefault);
	VALUE(cudaMemoryTypeUnregistered);
	VALUE(cudaMemoryTypeHost);
	VALUE(cudaMemoryTypeDevice);
	VALUE(cudaDriverEntryPointSymbolNotFound);
	SIZE(struct cudaDeviceProp);
	FIELD(struct cudaDeviceProp, totalGlobalMem);
	FIELD(struct cudaDeviceProp, warpSize);
	FIELD(struct cudaDeviceProp, major);
	FIELD(struct cudaDeviceProp, minor);
	FIELD(struct cudaDeviceProp, multiProcessorCount);
	FIELD(struct cudaDeviceProp, canMapHostMemory);
	SIZE(struct cudaPointerAttributes);
	FIELD(struct cudaPointerAttributes, device);
	FIELD(struct cudaPointerAttributes, hostPointer);
	SIZE(struct cudaFuncAttributes);
	FIELD(struct cudaFuncAttributes, maxThreadsPerBlock);
	FIELD(struct cudaFuncAttributes, maxDynamicSharedSizeBytes);
	SIZE(cudaLaunchConfig_t);
	FIELD(cudaLaunchConfig_t, stream);
	SIZE(cudaIpcMemHandle_t);
}

static void dump_launches(void)
{
	SIZE(CUlaunchConfig);
	FIELD(CUlaunchConfig, sharedMemBytes);
	FIELD(CUlaunchConfig, hStream);
	FIELD(CUlaunchConfig, numAttrs);
	SIZE(CUmemPoolProps);
	VALUE((size_t)CU_LAUNCH_PARAM_END);
	VALUE((size_t)CU_LAUNCH_PARAM_BUFFER_POINTER);
	VALUE((size_t)CU_LAUNCH_PARAM_BUFFER_SIZE);
	VALUE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	VALUE(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
}

static void dump_cuda_attributes(void)
{
	VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	VALUE(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	VALUE(CU_DEVICE_ATTRIBUTE_INTEGRATED);
	VALUE(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
	VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
	VALUE(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
	VALUE(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
	VALUE(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
	VALUE(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
	VALUE(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
	VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	VALUE(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
	VALUE(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
	VALUE(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
	VALUE(CU_POINTER_ATTRIBUTE_CONTEXT);
	VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
	VALUE(CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
	VALUE(CU_POINTER_ATTRIBUTE_HOST_POINTER);
	VALUE(CU_POINTER_ATTRIBUTE_IS_MANAGED);
	VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
	VALUE(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
	VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
	VALUE(CU_MEMORYTYPE_HOST);
	VALUE(CU_MEMORYTYPE_DEVICE);
}

static void dump_cuda_flags(void)
{
	VALUE(CU_CTX_SCHED_AUTO);
	VALUE(CU_CTX_SCHED_SPIN);
	VALUE(CU_CTX_SCHED_YIELD);
	VALUE(CU_CTX_SCHED_BLOCKING_SYNC);
	VALUE(CU_CTX_MAP_HOST);
	VALUE(CU_STREAM_DEFAULT);
	VALUE(CU_STREAM_NON_BLOCKING);
	VALUE(CU_EVENT_DEFAULT);
	VALUE(CU_EVENT_BLOCKING_SYNC);
	VALUE(CU_EVENT_DISABLE_TIMING);
	VALUE(CU_EVENT_INTERPROCESS);
	VALUE(CU_STREAM_WRITE_VALUE_DEFAULT);
	VALUE(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
	VALUE(CU_STREAM_CAPTURE_STATUS_NONE);
	VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE);
	VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL);
	VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	VALUE(CU_STREAM_CAPTURE_MODE_RELAXED);
	VALUE(CU_GET_PROC_ADDRESS_DEFAULT);
	VALUE(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
	VALUE(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	VALUE(CU_GET_PROC_ADDRESS_SUCCESS);
	VALUE(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	VALUE(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	VALUE(CU_MEMHOSTALLOC_PORTABLE);
	VALUE(CU_MEMHOSTALLOC_DEVICEMAP);
	VALUE(CU_MEMHOSTALLOC_WRITECOMBINED);
	VALUE(CU_MEMHOSTREGISTER_PORTABLE);
	VALUE(CU_MEMHOSTREGISTER_DEVICEMAP);
	VALUE(CU_MEMHOSTREGISTER_IOMEMORY);
	VALUE(CU_MEMHOSTREGISTER_READ_ONLY);
	VALUE((size_t)CU_STREAM_LEGACY);
	VALUE((size_t)CU_STREAM_PER_THREAD);
}

static void dump_cuda_sizes(void)
{
	SIZE(CUresult);
	SIZE(CUdevice);
	SIZE(CUdeviceptr);
	SIZE(CUuuid);
	SIZE(CUstreamCaptureMode);
	SIZE(CUstreamCaptureStatus);
	SIZE(cuuint32_t);
	SIZE(cuuint64_t);
}

static void dump_context_symbols(void)
{
	SYMBOL(cuCtxCreate);
	SYMBOL(cuCtxDestroy);
	SYMBOL(cuCtxGetApiVersion);
	SYMBOL(cuCtxGetCurrent);
	SYMBOL(cuCtxGetDevice);
	SYMBOL(cuCtxGetId);
	SYMBOL(cuCtxGetStreamPriorityRange);
	SYMBOL(cuCtxPopCurrent);
	SYMBOL(cuCtxPushCurrent);
	SYMBOL(cuCtxSetCurrent);
	SYMBOL(cuCtxSynchronize);
	SYMBOL(cuDeviceGet);
	SYMBOL(cuDeviceGetAttribute);
	SYMBOL(cuDeviceGetCount);
	SYMBOL(cuDeviceGetName);
	SYMBOL(cuDeviceGetPCIBusId);
	SYMBOL(cuDeviceGetUuid);
	SYMBOL(cuDevicePrimaryCtxGetState);
	SYMBOL(cuDevicePrimaryCtxRelease);
	SYMBOL(cuDevicePrimaryCtxRetain);
	SYMBOL(cuDevicePrimaryCtxSetFlags);
	SYMBOL(cuDeviceTotalMem);
	SYMBOL(cuDriverGetVersion);
	SYMBOL(cuEventCreate);
	SYMBOL(cuEventDestroy);
	SYMBOL(cuEventElapsedTime);
	SYMBOL(cuEventQuery);
	SYMBOL(cuEventRecord);
	SYMBOL(cuEventSynchronize);
	SYMBOL(cuGetErrorName);
	SYMBOL(cuGetErrorString);
	SYMBOL(cuGetProcAddress);
	SYMBOL(cuInit);
	SYMBOL(cuLaunchHostFunc);
	SYMBOL(cuLaunchKernel);
	SYMBOL(cuModuleLoadData);
	SYMBOL(cuModuleUnload);
	SYMBOL(cuModuleGetFunction);
}

static void dump_memory_symbols(void)
{
	SYMBOL(cuMemAlloc);
	SYMBOL(cuMemAllocHost);
	SYMBOL(cuMemFree);
	SYMBOL(cuMemFreeHost);
	SYMBOL(cuMemGetAddressRange);
	SYMBOL(cuMemGetInfo);
	SYMBOL(cuMemHostAlloc);
	SYMBOL(cuMemHostGetDevicePointer);
	SYMBOL(cuMemHostGetFlags);
	SYMBOL(cuMemHostRegister);
	SYMBOL(cuMemHostUnregister);
	SYMBOL(cuMemcpy);
	SYMBOL(cuMemcpyAsync);
	SYMBOL(cuMemcpyDtoD);
	SYMBOL(cuMemcpyDtoDAsync);
	SYMBOL(cuMemcpyDtoH);
	SYMBOL(cuMemcpyDtoHAsync);
	SYMBOL(cuMemcpyHtoD);
	SYMBOL(cuMemcpyHtoDAsync);
	SYMBOL(cuMemsetD32);
	SYMBOL(cuMemsetD32Async);
	SYMBOL(cuMemsetD8);
	SYMBOL(cuMemsetD8Async);
	SYMBOL(cuPointerGetAttribute);
}

static void dump_stream_symbols(void)
{
	SYMBOL(cuStreamBeginCapture);
	SYMBOL(cuStreamCreate);
	SYMBOL(cuStreamCreateWithPriority);
	SYMBOL(cuStreamDestroy);
	SYMBOL(cuStreamEndCapture);
	SYMBOL(cuStreamGetCaptureInfo);
	SYMBOL(cuStreamGetCtx);
	SYMBOL(cuStreamGetFlags);
	SYMBOL(cuStreamGetId);
	SYMBOL(cuStreamGetPriority);
	SYMBOL(cuStreamIsCapturing);
	SYMBOL(cuStreamQuery);
	SYMBOL(cuStreamSynchronize);
	SYMBOL(cuStreamWaitEvent);
	SYMBOL(cuStreamWriteValue32);
	SYMBOL(cuStreamWriteValue64);
	SYMBOL(cuThreadExchangeStreamCaptureMode);
}

static void dump_nccl_values(void)
{
	VALUE(ncclSuccess);
	VALUE(ncclUnhandledCudaError);
	VALUE(ncclSystemError);
	VALUE(ncclInternalError);
	VALUE(ncclInvalidArgument);
	VALUE(ncclInvalidUsage);
	VALUE(ncclRemoteError);
	VALUE(ncclInProgress);
	VALUE(ncclNumResults);
	VALUE(ncclSum);
	VALUE(ncclProd);
	VALUE(ncclMax);
	VALUE(ncclMin);
	VALUE(ncclAvg);
	VALUE(ncclNumOps);
	VALUE(ncclMaxRedOp);
	VALUE(ncclInt8);
	VALUE(ncclChar);
	VALUE(ncclUint8);
	VALUE(ncclInt32);
	VALUE(ncclInt);
	VALUE(ncclUint32);
	VALUE(ncclInt64);
	VALUE(ncclUint64);
	VALUE(ncclFloat16);
	VALUE(ncclHalf);
	VALUE(ncclFloat32);
	VALUE(ncclFloat);
	VALUE(ncclFloat64);
	VALUE(ncclDouble);
	VALUE(ncclBfloat16);
	VALUE(ncclFloat8e4m3);
	VALUE(ncclFloat8e5m2);
	VALUE(ncclNumTypes);
	VALUE(ncclScalarDevice);
	VALUE(ncclScalarHostImmediate);
	VALUE(NCCL_MAJOR);
	VALUE(NCCL_MINOR);
	VALUE(NCCL_PATCH);
	VALUE(NCCL_VERSION_CODE);
	VALUE(NCCL_UNIQUE_ID_BYTES);
	VALUE(NCCL_SPLIT_NOCOLOR);
	VALUE(NCCL_CONFIG_UNDEF_INT);
	VALUE(NCCL_UNDEF_FLOAT);
	VALUE(NCCL_WIN_DEFAULT);
	VALUE(NCCL_WIN_COLL_SYMMETRIC);
	VALUE(NCCL_SHRINK_DEFAULT);
	VALUE(NCCL_SHRINK_ABORT);
	VALUE(NCCL_REVOKE_DEFAULT);
}

static void dump_nccl_types(void)
{
	SIZE(ncclUniqueId);
	SIZE(ncclResult_t);
	SIZE(ncclConfig_t);
	SIZE(ncclSimInfo_t);
	SIZE(ncclRedOp_t);
	SIZE(ncclDataType_t);
	SIZE(ncclScalarResidence_t);
	FIELD(ncclConfig_t, size);
	FIELD(ncclConfig_t, magic);
	FIELD(ncclConfig_t, version);
	FIELD(ncclConfig_t, blocking);
	FIELD(ncclConfig_t, cgaClusterSize);
	FIELD(ncclConfig_t, minCTAs);
	FIELD(ncclConfig_t, maxCTAs);
	FIELD(ncclConfig_t, netName);
	FIELD(ncclConfig_t, splitShare);
	FIELD(ncclConfig_t, trafficClass);
	FIELD(ncclConfig_t, commName);
	FIELD(ncclConfig_t, collnetEnable);
	FIELD(ncclConfig_t, CTAPolicy);
	FIELD(ncclConfig_t, shrinkShare);
	FIELD(ncclConfig_t, nvlsCTAs);
	FIELD(ncclConfig_t, nChannelsPerNetPeer);
	FIELD(ncclConfig_t, nvlinkCentricSched);
	FIELD(ncclSimInfo_t, size);
	FIELD(ncclSimInfo_t, magic);
	FIELD(ncclSimInfo_t, version);
	FIELD(ncclSimInfo_t, estimatedTime);
}

static void dump_initializers(void)
{
	const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

	VALUE(config.size);
	VALUE(config.magic);
	VALUE(config.version);
	VALUE(config.blocking);
	VALUE(config.nvlinkCentricSched);
	VALUE(config.netName == NULL);
	VALUE(info.size);
	VALUE(info.magic);
	VALUE(info.version);
	VALUE(info.estimatedTime);
}

int main(void)
{
	dump_cuda_results();
	dump_cuda_attributes();
	dump_cuda_flags();
	dump_launches();
	dump_runtime();
	dump_cuda_sizes();
	dump_context_symbols();
	dump_memory_symbols();
	dump_stream_symbols();
	dump_nccl_values();
	dump_nccl_types();
	dump_initializers();
	return 0;
}
