/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's functions that make, launch and end CUDA graphs, those that wait for the device, and
 * the two that hand out pointers to functions: exported from here, so that programs linked with
 * libcuda.so.1 come by, and handed out in place of the driver's own by dlsym and cuGetProcAddress,
 * which is how every CUDA runtime, static or dynamic, gets at them.
 *
 * A wrapper passes its arguments on as they are and looks at the result. Arguments beyond those a
 * version of the function has are registers nobody reads.
 */
#pragma once

#include <stdint.h>

#include "agent/base/next_dlsym.h"

/*
 * X(exported name, name for cuGetProcAddress, first CUDA version it is returned for, first it is no
 * longer, per-thread default stream: 0 no, 1 yes, -1 there is no such twin, how it is handled)
 *
 * A row keeps one function of the driver, so each row stands for one list of parameters. For
 * cuGraphInstantiate cuda.h of CUDA 12 means WithFlags, cudaTypedefs.h knows no such version of the
 * name: what a driver then hands out has a row to itself, which is not exported. An error node in
 * the flags' place is a pointer, and has none of the bits that are looked at.
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
 * What dlsym(handle, name) gives for one of these names, given the next dlsym: NULL = not ours, let
 * the next dlsym answer; CW_ABSENT; or the wrapper.
 */
void *cw_cuda_symbol(cw_dlsym_fn next, void *handle, const char *name);
