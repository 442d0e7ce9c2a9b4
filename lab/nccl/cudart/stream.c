/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, capture and graphs. */
#include "lab/nccl/cudart/runtime.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	return RT_CALL(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, CU_STREAM_DEFAULT, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return RT_CALL(cuStreamDestroy, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return RT_CALL(cuStreamSynchronize, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return RT_CALL(cuStreamQuery, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return RT_CALL(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	return RT_CALL(cuStreamGetId, stream, id);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	return RT_CALL(cuStreamGetFlags, stream, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	return RT_CALL(cuStreamGetPriority, stream, priority);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return RT_CALL(cuEventCreate, event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, CU_EVENT_DEFAULT);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	return RT_CALL(cuEventDestroy, event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return RT_CALL(cuEventRecord, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return flags == 0 ? cudaEventRecord(event, stream) : rt_unsupported(__func__);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return RT_CALL(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return RT_CALL(cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return RT_CALL(cuEventElapsedTime, ms, start, end);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	return RT_CALL(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)status);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id, cudaGraph_t *graph,
				     const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
				     size_t *num_deps)
{
	return RT_CALL(cuStreamGetCaptureInfo, stream, (CUstreamCaptureStatus *)status,
		       (cuuint64_t *)id, graph, deps, (const CUgraphEdgeData **)edges, num_deps);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
	return RT_CALL_OPEN(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
	return RT_CALL(cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	return RT_CALL(cuStreamEndCapture, stream, graph);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return RT_CALL(cuGraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *num_nodes)
{
	return RT_CALL(cuGraphGetNodes, graph, nodes, num_nodes);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return RT_CALL(cuGraphLaunch, exec, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	return RT_CALL(cuGraphExecDestroy, exec);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return RT_CALL(cuGraphDestroy, graph);
}

/* NCCL calls these during a capture. */

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *deps,
						const cudaGraphEdgeData *edges, size_t num_deps,
						unsigned int flags)
{
	return RT_CALL(cuStreamUpdateCaptureDependencies, stream, deps,
		       (const CUgraphEdgeData *)edges, num_deps, flags);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr, cudaHostFn_t destroy,
				 unsigned int refs, unsigned int flags)
{
	return RT_CALL(cuUserObjectCreate, object, ptr, destroy, refs, flags);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	return RT_CALL(cuUserObjectRelease, object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
				      unsigned int count, unsigned int flags)
{
	return RT_CALL(cuGraphRetainUserObject, graph, object, count, flags);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
				     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
				     size_t count)
{
	return RT_CALL(cuGraphAddDependencies, graph, from, to, (const CUgraphEdgeData *)edges,
		       count);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
					const cudaGraphNode_t *deps, size_t num_deps,
					cudaEvent_t event)
{
	return RT_CALL(cuGraphAddEventRecordNode, node, graph, deps, num_deps, event);
}
