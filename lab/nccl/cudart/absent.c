/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch is linked to and this device does not have. Each says its name and fails; whatever
 * its arguments are, they are not looked at.
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
