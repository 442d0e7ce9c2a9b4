/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture and graphs of the simulated driver. Every test runs in a process of its own. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <pthread.h>

static CUcontext ctx;
static CUstream stream;
static CUdeviceptr word;

static void setup(void)
{
	CUdevice dev;

	cr_assert_eq(cuInit(0), CUDA_SUCCESS);
	cr_assert_eq(cuDeviceGet(&dev, 0), CUDA_SUCCESS);
	cr_assert_eq(cuDevicePrimaryCtxRetain(&ctx, dev), CUDA_SUCCESS);
	cr_assert_eq(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
	cr_assert_eq(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	cr_assert_eq(cuMemAlloc(&word, 4), CUDA_SUCCESS);
	cr_assert_eq(cuMemsetD32(word, 0, 1), CUDA_SUCCESS);
}

TestSuite(sim_graphs, .init = setup);

static uint32_t value(void)
{
	return *(volatile uint32_t *)(uintptr_t)word;
}

static void increment(void *arg)
{
	*(volatile uint32_t *)(uintptr_t)word = value() + 1;
}

/* A graph that adds so many ones. */
static CUgraph capture(int ones)
{
	CUgraph graph = NULL;

	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	for (int i = 0; i < ones; i++)
		cr_assert_eq(cuLaunchHostFunc(stream, increment, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec = NULL;

	cr_assert_eq(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
	return exec;
}

static void launch(CUgraphExec exec)
{
	cr_assert_eq(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

Test(sim_graphs, run_what_was_captured_at_each_launch)
{
	CUgraphExec exec = instantiate(capture(2));

	cr_assert_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
	cr_assert_eq(value(), 0, "a capture runs nothing");
	launch(exec);
	launch(exec);
	cr_assert_eq(value(), 4);
}

Test(sim_graphs, an_executable_graph_outlives_its_graph)
{
	CUgraph graph = capture(1);
	CUgraphExec exec = instantiate(graph);

	cr_assert_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
	cr_assert_eq(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	launch(exec);
	cr_assert_eq(value(), 1);
	cr_assert_eq(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	cr_assert_eq(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

Test(sim_graphs, tell_what_is_captured)
{
	CUstreamCaptureStatus status;
	CUgraph during = NULL, graph = NULL;
	cuuint64_t first = 0, second = 0;

	cr_assert_eq(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
	cr_assert_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	cr_assert_eq(cuStreamGetCaptureInfo_v2(stream, &status, &first, &during, NULL, NULL),
		     CUDA_SUCCESS);
	cr_assert_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	cr_assert_eq(graph, during, "the graph is the one that was told");
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	cr_assert_eq(cuStreamGetCaptureInfo(stream, &status, &second, &during, NULL, NULL, NULL),
		     CUDA_SUCCESS);
	cr_assert_neq(first, second);
}

Test(sim_graphs, other_streams_join_through_events)
{
	CUgraph graph = NULL;
	CUstream other;
	CUevent fork, join;

	cr_assert_eq(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	cr_assert_eq(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	cr_assert_eq(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(fork, stream), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(other, increment, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(join, other), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWaitEvent(stream, join, 0), CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(other), CUDA_SUCCESS);
	cr_assert_eq(value(), 0);
	launch(instantiate(graph));
	cr_assert_eq(value(), 1);
}

Test(sim_graphs, a_forbidden_call_spoils_a_capture)
{
	CUgraph graph = (CUgraph)1;
	CUstreamCaptureStatus status;

	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	cr_assert_eq(cuLaunchHostFunc(stream, increment, NULL),
		     CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	cr_assert_eq(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
	cr_assert_eq(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	cr_assert_null(graph);
	launch(instantiate(capture(1)));
	cr_assert_eq(value(), 1, "the stream is usable again");
}

static void *allocate(void *relaxed)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr p;

	cr_assert_eq(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
	if (relaxed)
		cr_assert_eq(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
	return (void *)(intptr_t)cuMemAlloc(&p, 4);
}

/* From any thread, unless that thread has chosen the relaxed mode. */
Test(sim_graphs, an_allocation_elsewhere_spoils_a_global_capture)
{
	CUgraph graph = NULL;
	pthread_t thread;
	void *r;

	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(pthread_create(&thread, NULL, allocate, &graph), 0);
	cr_assert_eq(pthread_join(thread, &r), 0);
	cr_assert_eq((CUresult)(intptr_t)r, CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(pthread_create(&thread, NULL, allocate, NULL), 0);
	cr_assert_eq(pthread_join(thread, &r), 0);
	cr_assert_eq((CUresult)(intptr_t)r, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

Test(sim_graphs, clones_children_and_updates)
{
	CUgraph one = capture(1), clone = NULL, parent = NULL;
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node;
	CUgraphExec exec;

	cr_assert_eq(cuGraphClone(&clone, one), CUDA_SUCCESS);
	cr_assert_eq(cuGraphCreate(&parent, 0), CUDA_SUCCESS);
	cr_assert_eq(cuGraphAddChildGraphNode(&node, parent, NULL, 0, one), CUDA_SUCCESS);
	cr_assert_eq(cuGraphAddChildGraphNode(&node, parent, NULL, 0, clone), CUDA_SUCCESS);
	cr_assert_eq(cuGraphDestroy(one), CUDA_SUCCESS);
	launch(instantiate(parent));
	cr_assert_eq(value(), 2);
	exec = instantiate(clone);
	cr_assert_eq(cuGraphExecUpdate(exec, capture(1), &info), CUDA_SUCCESS);
	cr_assert_eq(cuGraphExecUpdate(exec, parent, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	launch(exec);
	cr_assert_eq(value(), 3);
}

Test(sim_graphs, conditions_are_refused)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraph graph = NULL;
	CUgraphNode node;

	cr_assert_eq(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	cr_assert_eq(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params),
		     CUDA_ERROR_NOT_SUPPORTED);
}

Test(sim_graphs, a_captured_launch_becomes_part_of_the_other_graph)
{
	CUgraphExec inner = instantiate(capture(2));
	CUgraph outer = NULL;

	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(cuGraphLaunch(inner, stream), CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &outer), CUDA_SUCCESS);
	cr_assert_eq(cuGraphExecDestroy(inner), CUDA_SUCCESS);
	launch(instantiate(outer));
	cr_assert_eq(value(), 2);
}

Test(sim_graphs, names_lead_to_the_version_asked_for)
{
	CUdriverProcAddressQueryResult status;
	void *old = NULL, *new = NULL, *ptsz = NULL;

	cr_assert_eq(cuGetProcAddress("cuGraphInstantiate", &old, 11040, 0, &status), CUDA_SUCCESS);
	cr_assert_eq(cuGetProcAddress("cuGraphInstantiateWithFlags", &new, 12040, 0, &status),
		     CUDA_SUCCESS);
	cr_assert_eq(old, (void *)cuGraphInstantiate_v2);
	cr_assert_eq(new, (void *)cuGraphInstantiate);
	cr_assert_eq(cuGetProcAddress("cuGraphLaunch", &ptsz, 12040,
				      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status),
		     CUDA_SUCCESS);
	cr_assert_eq(ptsz, (void *)cuGraphLaunch_ptsz);
}

/* NCCL's actions under capture: events that are not the capture's own, an object of its own. */

static CUevent event_of(CUstream where)
{
	CUevent event;

	cr_assert_eq(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	if (where)
		cr_assert_eq(cuEventRecord(event, where), CUDA_SUCCESS);
	return event;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void pass_gate(void *arg)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	increment(arg);
}

Test(sim_graphs, wait_for_an_event_of_somebody_else_at_each_launch)
{
	CUstream other;
	CUgraphExec exec;
	CUgraph graph;
	CUevent event;

	cr_assert_eq(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	event = event_of(other);
	cr_assert_eq(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL),
		     CUDA_ERROR_INVALID_VALUE, "there is no capture");
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(stream, increment, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	exec = instantiate(graph);

	pthread_mutex_lock(&gate);
	cr_assert_eq(cuLaunchHostFunc(other, pass_gate, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(event, other), CUDA_SUCCESS);
	cr_assert_eq(cuEventDestroy(event), CUDA_SUCCESS, "the graph keeps it");
	cr_assert_eq(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
	cr_assert_eq(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	pthread_mutex_unlock(&gate);
	cr_assert_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
	cr_assert_eq(value(), 2, "the other stream's, then the graph's");
}

Test(sim_graphs, reach_an_event_that_was_added_at_each_launch)
{
	CUevent event = event_of(NULL);
	CUgraph graph = NULL;
	CUgraphNode node;
	CUgraphExec exec;
	CUstream other;

	cr_assert_eq(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(stream, pass_gate, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	cr_assert_eq(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event), CUDA_SUCCESS);
	exec = instantiate(graph);
	cr_assert_eq(cuEventQuery(event), CUDA_SUCCESS, "not launched yet");

	for (int i = 1; i <= 2; i++) {
		pthread_mutex_lock(&gate);
		cr_assert_eq(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
		cr_assert_eq(cuEventQuery(event), CUDA_ERROR_NOT_READY);
		cr_assert_eq(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
		pthread_mutex_unlock(&gate);
		cr_assert_eq(cuStreamSynchronize(other), CUDA_SUCCESS);
		cr_assert_eq(value(), (uint32_t)i);
	}
}

static pthread_cond_t is_destroyed = PTHREAD_COND_INITIALIZER;
static int destroyed;

static void destroy(void *arg)
{
	pthread_mutex_lock(&gate);
	destroyed += *(int *)arg;
	pthread_cond_signal(&is_destroyed);
	pthread_mutex_unlock(&gate);
}

Test(sim_graphs, destroy_what_was_left_to_them_with_the_last_of_them)
{
	CUgraph graph = capture(1);
	CUuserObject object;
	CUgraphExec exec;
	size_t nodes = 0;
	int one = 1;

	cr_assert_eq(
		cuUserObjectCreate(&object, &one, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		CUDA_SUCCESS);
	cr_assert_eq(cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE),
		     CUDA_ERROR_INVALID_VALUE, "there is one reference to give away");
	cr_assert_eq(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
		     CUDA_SUCCESS);
	cr_assert_eq(cuGraphGetNodes(graph, NULL, &nodes), CUDA_SUCCESS);
	cr_assert_eq(nodes, 1, "an object is no node");
	exec = instantiate(graph);
	launch(exec);
	cr_assert_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
	launch(exec);
	pthread_mutex_lock(&gate);
	cr_assert_eq(destroyed, 0);
	cr_assert_eq(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	while (!destroyed)
		pthread_cond_wait(&is_destroyed, &gate);
	cr_assert_eq(destroyed, 1);
	pthread_mutex_unlock(&gate);
}

Test(sim_graphs, take_what_a_capture_shall_depend_on_as_it_is)
{
	const CUgraphEdgeData *edges;
	const CUgraphNode *deps;
	CUstreamCaptureStatus status;
	CUgraph graph;
	size_t count = 1;

	cr_assert_eq(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 1),
		     CUDA_ERROR_ILLEGAL_STATE);
	cr_assert_eq(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 1), CUDA_SUCCESS);
	cr_assert_eq(cuStreamGetCaptureInfo(stream, &status, NULL, &graph, &deps, &edges, &count),
		     CUDA_SUCCESS);
	cr_assert(count == 0 && !deps && !edges);
	cr_assert_eq(cuGraphAddDependencies(graph, NULL, NULL, NULL, 0), CUDA_SUCCESS);
	cr_assert_eq(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}
