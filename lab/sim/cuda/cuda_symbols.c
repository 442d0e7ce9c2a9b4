/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error texts, and the table of every function of the simulated driver by name and version. One
 * name can have several rows, because a program that requests the interface of CUDA 12 gets CUDA
 * 12's symbol.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/sim/cuda/cuda_sim.h"

#define ERRORS(X)                                                                                  \
	X(CUDA_SUCCESS, "no error")                                                                \
	X(CUDA_ERROR_INVALID_VALUE, "invalid argument")                                            \
	X(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                               \
	X(CUDA_ERROR_NOT_INITIALIZED, "initialization error")                                      \
	X(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")                              \
	X(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                                     \
	X(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid")                              \
	X(CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                                    \
	X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported")                      \
	X(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported")                \
	X(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                                    \
	X(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")      \
	X(CUDA_ERROR_NOT_FOUND, "named symbol not found")                                          \
	X(CUDA_ERROR_NOT_READY, "device not ready")                                                \
	X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context is active")                          \
	X(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                                 \
	X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory is already registered")               \
	X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "memory is not registered")                       \
	X(CUDA_ERROR_NOT_PERMITTED, "operation not permitted")                                     \
	X(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                                     \
	X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,                                                   \
	  "operation not permitted when stream is capturing")                                      \
	X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "capture was invalidated by an earlier error")    \
	X(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would merge two captures")                   \
	X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not begun in this stream")             \
	X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency on work outside of the capture")        \
	X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "implicit dependency on a capture")                  \
	X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture was begun in another thread")           \
	X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "graph update was not performed")                  \
	X(CUDA_ERROR_UNKNOWN, "unknown error")

static CUresult find_error(CUresult error, const char **name, const char **text)
{
	static const struct {
		CUresult error;
		const char *name;
		const char *text;
	} table[] = {
#define ROW(e, t) { e, #e, t },
		ERRORS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].error == error) {
			*name = table[i].name;
			*text = table[i].text;
			return CUDA_SUCCESS;
		}
	}
	*name = NULL;
	*text = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	const char *name;

	return text ? find_error(error, &name, text) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	const char *text;

	return name ? find_error(error, name, &text) : CUDA_ERROR_INVALID_VALUE;
}

/* The first version of cuGetProcAddress, which had no status argument. */
CUresult sim_get_proc_address_v1(const char *symbol, void **pfn, int version,
				 cuuint64_t flags) __asm__("cuGetProcAddress");
/* The name of this function in programs built against CUDA 12 and older. */
CUresult sim_event_elapsed_time_v1(float *ms, CUevent start,
				   CUevent end) __asm__("cuEventElapsedTime");

struct symbol {
	const char *name;
	void *fn;
	int since; /* CUDA version, like CUDA_VERSION */
};

/* The macro stringifies name before the header's macros turn it into its versioned symbol. */
#define SYM(name, since)                                                                           \
	{                                                                                          \
#name, (void *)name, since                                                         \
	}

static const struct symbol symbols[] = {
	{ "cuGetProcAddress", (void *)sim_get_proc_address_v1, 11030 },
	{ "cuCtxCreate", (void *)cuCtxCreate_v2, 3020 },
	{ "cuStreamGetCaptureInfo", (void *)cuStreamGetCaptureInfo_v2, 11030 },
	{ "cuEventElapsedTime", (void *)sim_event_elapsed_time_v1, 2000 },
	SYM(cuInit, 2000),
	SYM(cuDriverGetVersion, 2000),
	SYM(cuGetErrorString, 2000),
	SYM(cuGetErrorName, 2000),
	SYM(cuGetProcAddress, 12000),
	SYM(cuDeviceGet, 2000),
	SYM(cuDeviceGetCount, 2000),
	SYM(cuDeviceGetName, 2000),
	SYM(cuDeviceGetUuid, 11040),
	SYM(cuDeviceTotalMem, 3020),
	SYM(cuDeviceGetAttribute, 2000),
	SYM(cuDeviceGetPCIBusId, 2000),
	SYM(cuDeviceGetByPCIBusId, 4010),
	SYM(cuDeviceCanAccessPeer, 4000),
	SYM(cuDevicePrimaryCtxRetain, 7000),
	SYM(cuDevicePrimaryCtxRelease, 11000),
	SYM(cuDevicePrimaryCtxSetFlags, 11000),
	SYM(cuDevicePrimaryCtxGetState, 7000),
	SYM(cuCtxCreate, 13000),
	SYM(cuCtxDestroy, 3020),
	SYM(cuCtxPushCurrent, 3020),
	SYM(cuCtxPopCurrent, 3020),
	SYM(cuCtxSetCurrent, 2000),
	SYM(cuCtxGetCurrent, 2000),
	SYM(cuCtxGetDevice, 2000),
	SYM(cuCtxGetId, 12000),
	SYM(cuCtxGetApiVersion, 2000),
	SYM(cuCtxGetStreamPriorityRange, 2000),
	SYM(cuCtxSynchronize, 2000),
	SYM(cuStreamCreate, 2000),
	SYM(cuStreamCreateWithPriority, 2000),
	SYM(cuStreamDestroy, 3020),
	SYM(cuStreamSynchronize, 2000),
	SYM(cuStreamQuery, 2000),
	SYM(cuStreamWaitEvent, 2000),
	SYM(cuStreamGetCtx, 9020),
	SYM(cuStreamGetFlags, 2000),
	SYM(cuStreamGetPriority, 2000),
	SYM(cuStreamGetId, 12000),
	SYM(cuStreamIsCapturing, 10000),
	SYM(cuStreamGetCaptureInfo, 12030),
	SYM(cuStreamBeginCapture, 10010),
	SYM(cuStreamBeginCaptureToGraph, 12030),
	SYM(cuGraphCreate, 10000),
	SYM(cuGraphDestroy, 10000),
	SYM(cuGraphClone, 10000),
	SYM(cuGraphGetNodes, 10000),
	{ "cuGraphInstantiate", (void *)cuGraphInstantiate_v2, 11000 },
	{ "cuGraphInstantiateWithFlags", (void *)cuGraphInstantiate, 11040 },
	SYM(cuGraphInstantiateWithParams, 12000),
	SYM(cuGraphLaunch, 10000),
	SYM(cuGraphExecDestroy, 10000),
	SYM(cuGraphExecUpdate, 12000),
	SYM(cuGraphAddChildGraphNode, 10000),
	SYM(cuGraphAddNode, 12030),
	SYM(cuGraphAddEventRecordNode, 11010),
	SYM(cuGraphAddDependencies, 12030),
	SYM(cuGraphRetainUserObject, 11030),
	SYM(cuUserObjectCreate, 11030),
	SYM(cuUserObjectRelease, 11030),
	SYM(cuStreamEndCapture, 10000),
	SYM(cuStreamUpdateCaptureDependencies, 12030),
	SYM(cuThreadExchangeStreamCaptureMode, 10010),
	SYM(cuStreamWriteValue32, 11070),
	SYM(cuStreamWriteValue64, 11070),
	SYM(cuLaunchHostFunc, 10000),
	SYM(cuLaunchKernel, 4000),
	SYM(cuLaunchKernelEx, 11060),
	SYM(cuModuleLoadData, 2000),
	SYM(cuModuleUnload, 2000),
	SYM(cuModuleGetFunction, 2000),
	SYM(cuEventCreate, 2000),
	SYM(cuEventDestroy, 3020),
	SYM(cuEventRecord, 2000),
	SYM(cuEventQuery, 2000),
	SYM(cuEventSynchronize, 2000),
	SYM(cuEventElapsedTime, 12080),
	SYM(cuMemAlloc, 3020),
	SYM(cuMemFree, 3020),
	SYM(cuMemAllocAsync, 11020),
	SYM(cuMemAllocFromPoolAsync, 11020),
	SYM(cuMemFreeAsync, 11020),
	SYM(cuMemPoolCreate, 11020),
	SYM(cuMemPoolDestroy, 11020),
	SYM(cuMemPoolSetAttribute, 11020),
	SYM(cuMemGetInfo, 3020),
	SYM(cuMemGetAddressRange, 3020),
	SYM(cuIpcGetMemHandle, 4010),
	SYM(cuIpcOpenMemHandle, 11000),
	SYM(cuIpcCloseMemHandle, 4010),
	SYM(cuPointerGetAttribute, 2000),
	SYM(cuMemHostAlloc, 2000),
	SYM(cuMemAllocHost, 3020),
	SYM(cuMemFreeHost, 2000),
	SYM(cuMemHostRegister, 3020),
	SYM(cuMemHostUnregister, 2000),
	SYM(cuMemHostGetDevicePointer, 3020),
	SYM(cuMemHostGetFlags, 2000),
	SYM(cuMemcpy, 2000),
	SYM(cuMemcpyAsync, 2000),
	SYM(cuMemcpyHtoD, 3020),
	SYM(cuMemcpyDtoH, 3020),
	SYM(cuMemcpyDtoD, 3020),
	SYM(cuMemcpyHtoDAsync, 3020),
	SYM(cuMemcpyDtoHAsync, 3020),
	SYM(cuMemcpyDtoDAsync, 3020),
	SYM(cuMemsetD8, 3020),
	SYM(cuMemsetD32, 3020),
	SYM(cuMemsetD8Async, 2000),
	SYM(cuMemsetD32Async, 2000),
};

/*
 * Finds a function. flags: may request the variant in which stream 0 is the thread's own stream;
 * only one function has it.
 */
static CUdriverProcAddressQueryResult find_symbol(const char *name, int version, cuuint64_t flags,
						  void **pfn)
{
	const struct symbol *best = NULL;
	bool is_known = false;

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		const struct symbol *s = &symbols[i];

		if (strcmp(s->name, name) != 0)
			continue;
		is_known = true;
		if (s->since <= version && (!best || s->since > best->since))
			best = s;
	}
	*pfn = best ? best->fn : NULL;
	if (best && best->fn == (void *)cuGraphLaunch &&
	    (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		*pfn = (void *)cuGraphLaunch_ptsz;
	if (best)
		return CU_GET_PROC_ADDRESS_SUCCESS;
	return is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags,
			  CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult found;

	if (!symbol || !pfn)
		return CUDA_ERROR_INVALID_VALUE;
	found = find_symbol(symbol, version, flags, pfn);
	if (status)
		*status = found;
	/*
	 * If the caller passes a status argument, an unknown name is reported there and is no error
	 * of the call.
	 */
	return found == CU_GET_PROC_ADDRESS_SUCCESS || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult sim_get_proc_address_v1(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return cuGetProcAddress(symbol, pfn, version, flags, NULL);
}
