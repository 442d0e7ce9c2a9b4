/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks on the CUDA driver. We hook the functions that create, launch and destroy CUDA graphs. We
 * also hook the functions that wait for the device, and the two look-ups of driver functions.
 *
 * We export each wrapper, so a program that is linked with libcuda.so.1 calls the wrapper. dlsym
 * and cuGetProcAddress also return our wrapper instead of the driver's function. Every CUDA
 * runtime, static or dynamic, gets the driver's functions from these two look-ups.
 *
 * A wrapper passes its arguments on unchanged and checks the result. All wrappers pass six
 * registers; a function with fewer parameters ignores the extra ones.
 */
#pragma once

#include <stdint.h>

#include "agent/base/next_dlsym.h"

/*
 * X(exported name, name for cuGetProcAddress, first CUDA version of the row, first CUDA version
 * after the row, per-thread default stream, suffix of the do_…() that handles it)
 *
 * Values of the per-thread default stream: 0 = the function does not use it; 1 = the function uses
 * it; -1 = the driver has only one such function.
 *
 * Each row holds one driver function, and therefore one list of parameters. The name
 * cuGraphInstantiate is ambiguous from CUDA 12 on: cuda.h maps it to WithFlags, but cudaTypedefs.h
 * has no such version of the name. The function that a driver then returns gets its own row, which
 * we do not export. It may have a pointer to an error node in the place of the flags. Such a
 * pointer has none of the flag bits that we test.
 */
/* clang-format off */
#define CW_CUDA_HOOKS(X) \
	X(cuGetProcAddress, "cuGetProcAddress", 0, 12000, -1, proc_address) \
	X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, CW_NEVER, -1, proc_address) \
	X(cuStreamSynchronize, "cuStreamSynchronize", 0, CW_NEVER, 0, wait) \
	X(cuStreamSynchronize_ptsz, "cuStreamSynchronize", 0, CW_NEVER, 1, wait) \
	X(cuEventSynchronize, "cuEventSynchronize", 0, CW_NEVER, -1, wait) \
	X(cuCtxSynchronize, "cuCtxSynchronize", 0, 13000, -1, wait) \
	X(cuCtxSynchronize_v2, "cuCtxSynchronize", 13000, CW_NEVER, -1, wait) \
	X(cuStreamBeginCapture, "cuStreamBeginCapture", 0, 10010, 0, begin_capture) \
	X(cuStreamBeginCapture_ptsz, "cuStreamBeginCapture", 0, 10010, 1, begin_capture) \
	X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, CW_NEVER, 0, begin_capture) \
	X(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, CW_NEVER, 1, begin_capture) \
	X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 0, CW_NEVER, 0, capture_to_graph) \
	X(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 0, CW_NEVER, 1, capture_to_graph) \
	X(cuStreamEndCapture, "cuStreamEndCapture", 0, CW_NEVER, 0, end_capture) \
	X(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 0, CW_NEVER, 1, end_capture) \
	X(cuGraphCreate, "cuGraphCreate", 0, CW_NEVER, -1, create) \
	X(cuGraphInstantiate, "cuGraphInstantiate", 0, 11000, -1, instantiate) \
	X(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, 12000, -1, instantiate) \
	X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 0, CW_NEVER, -1, instantiate_flags) \
	X(any_cuGraphInstantiate, "cuGraphInstantiate", 12000, CW_NEVER, -1, instantiate_flags) \
	X(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 0, CW_NEVER, 0, instantiate_params) \
	X(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 0, CW_NEVER, 1, instantiate_params) \
	X(cuGraphLaunch, "cuGraphLaunch", 0, CW_NEVER, 0, launch) \
	X(cuGraphLaunch_ptsz, "cuGraphLaunch", 0, CW_NEVER, 1, launch) \
	X(cuGraphClone, "cuGraphClone", 0, CW_NEVER, -1, clone) \
	X(cuGraphDestroy, "cuGraphDestroy", 0, CW_NEVER, -1, destroy) \
	X(cuGraphExecDestroy, "cuGraphExecDestroy", 0, CW_NEVER, -1, exec_destroy) \
	X(cuGraphExecUpdate, "cuGraphExecUpdate", 0, 12000, -1, exec_update) \
	X(cuGraphExecUpdate_v2, "cuGraphExecUpdate", 12000, CW_NEVER, -1, exec_update) \
	X(cuGraphAddChildGraphNode, "cuGraphAddChildGraphNode", 0, CW_NEVER, -1, add_child) \
	X(cuGraphAddNode, "cuGraphAddNode", 0, 12030, -1, add_node) \
	X(cuGraphAddNode_v2, "cuGraphAddNode", 12030, CW_NEVER, -1, add_node_edges) \
	X(cuGraphExecChildGraphNodeSetParams, "cuGraphExecChildGraphNodeSetParams", 0, CW_NEVER, -1, exec_changed) \
	X(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams", 0, CW_NEVER, -1, exec_changed) \
	X(cuGraphNodeSetEnabled, "cuGraphNodeSetEnabled", 0, CW_NEVER, -1, exec_changed)
/* clang-format on */
#define CW_NEVER 1000000

/*
 * Decides the result of dlsym(handle, name) for the name of a hooked function. `next` is the next
 * dlsym. Returns NULL if the next dlsym must answer, CW_ABSENT if the symbol must look absent, and
 * otherwise the function to return.
 */
void *cw_cuda_symbol(cw_dlsym_fn next, void *handle, const char *name);
