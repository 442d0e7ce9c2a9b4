/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that PyTorch links to and this device does not have. Each prints its name and fails,
 * without looking at its arguments.
 */
#include "lab/nccl/cudart/runtime.h"

#define ABSENT(name)                                                                               \
	cudaError_t name(void);                                                                    \
	cudaError_t name(void)                                                                     \
	{                                                                                          \
		return rt_unsupported(#name);                                                      \
	}

ABSENT(cudaDeviceGetDefaultMemPool)
ABSENT(cudaGetSymbolAddress)
ABSENT(cudaGraphAddNode)
ABSENT(cudaGraphConditionalHandleCreate)
ABSENT(cudaGraphDebugDotPrint)
ABSENT(cudaGraphNodeGetDependencies)
ABSENT(cudaIpcGetEventHandle)
ABSENT(cudaIpcOpenEventHandle)
ABSENT(cudaKernelSetAttributeForDevice)
ABSENT(cudaLaunchCooperativeKernel)
ABSENT(cudaLibraryGetKernel)
ABSENT(cudaLibraryLoadData)
ABSENT(cudaLibraryUnload)
ABSENT(cudaMemPoolGetAttribute)
ABSENT(cudaMemPoolSetAccess)
ABSENT(cudaMemPoolTrimTo)
ABSENT(cudaMemcpyToSymbol)
ABSENT(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
ABSENT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
ABSENT(cudaStreamAddCallback)
ABSENT(cudaStreamBeginCaptureToGraph)
