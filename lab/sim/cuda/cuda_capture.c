/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture of the simulated driver. Unlike the real driver, we do not check that every stream
 * that joined a capture is joined back before the capture ends.
 */
#include "lab/sim/cuda/cuda_graph.h"

static cuuint64_t next_capture_id = 1;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult sim_capture_item(struct CUstream_st *s, const struct sim_item *item)
{
	if (s->capture->is_spoilt)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return sim_graph_add(s->capture, item);
}

CUresult sim_capture_join(struct CUstream_st *s, struct CUgraph_st *capture)
{
	if (!sim_graph_exists(capture) || !capture->is_capturing)
		return CUDA_ERROR_INVALID_VALUE; /* the event is of a capture that has ended */
	if (s->capture && s->capture != capture) {
		(void)sim_capture_spoil(s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
		return sim_capture_spoil(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	s->capture = capture;
	return CUDA_SUCCESS;
}

CUresult sim_capture_spoil(struct CUgraph_st *capture, CUresult error)
{
	capture->is_spoilt = true;
	return error;
}

/*
 * A capture in GLOBAL mode forbids unsafe calls to all threads. A capture in THREAD_LOCAL mode
 * forbids them to its own thread. A thread in RELAXED mode may always make them.
 */
CUresult sim_capture_check_unsafe(void)
{
	CUresult r = CUDA_SUCCESS;

	for (struct CUgraph_st *g = sim_graphs; g; g = g->next) {
		bool is_own = g->is_capturing && pthread_equal(g->thread, pthread_self());

		if (!g->is_capturing || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
		    g->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (is_own || (g->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
			       thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL))
			r = sim_capture_spoil(g, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	return r;
}

struct legacy_check {
	struct CUctx_st *ctx;
	CUresult result;
};

static void check_one(struct CUstream_st *s, void *arg)
{
	struct legacy_check *check = arg;

	if (s->capture && s->ctx == check->ctx && !(s->flags & CU_STREAM_NON_BLOCKING))
		check->result = sim_capture_spoil(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult sim_capture_check_legacy(struct CUctx_st *ctx)
{
	struct legacy_check check = { .ctx = ctx };

	sim_streams_each(check_one, &check);
	return check.result;
}

/* Begins a capture. given: the graph to capture into; NULL = a new one. Lock held. */
static CUresult begin(struct CUstream_st *s, struct CUgraph_st *given, CUstreamCaptureMode mode)
{
	struct CUgraph_st *g = given;

	if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s == s->ctx->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (s->capture || (g && g->is_capturing))
		return CUDA_ERROR_INVALID_VALUE;
	if (!g)
		g = sim_graph_new();
	if (!g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->is_capturing = true;
	g->is_spoilt = false;
	g->is_given = given != NULL;
	g->mode = mode;
	g->id = next_capture_id++;
	g->origin = s;
	g->thread = pthread_self();
	s->capture = g;
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
	struct CUstream_st *s;
	CUresult r = sim_stream_lock(handle, &s);

	if (r != CUDA_SUCCESS)
		return r;
	r = begin(s, NULL, mode);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *deps,
				     const CUgraphEdgeData *edges, size_t num_deps,
				     CUstreamCaptureMode mode)
{
	struct CUstream_st *s;
	CUresult r = sim_stream_lock(handle, &s);

	if (r != CUDA_SUCCESS)
		return r;
	r = sim_graph_exists(graph) ? begin(s, graph, mode) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

static void leave_capture(struct CUstream_st *s, void *arg)
{
	if (s->capture == arg)
		s->capture = NULL;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *ret_graph)
{
	struct CUstream_st *s;
	struct CUgraph_st *g;
	CUresult r = ret_graph ? sim_stream_lock(handle, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	*ret_graph = NULL;
	g = s->capture;
	if (!g) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (g->origin != s) {
		r = sim_capture_spoil(g, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	} else if (g->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		   !pthread_equal(g->thread, pthread_self())) {
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	} else {
		sim_streams_each(leave_capture, g);
		g->is_capturing = false;
		if (g->is_spoilt && !g->is_given)
			sim_graph_free(g);
		else if (!g->is_spoilt)
			*ret_graph = g;
		r = *ret_graph ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/*
 * Adds dependencies of the next node. They change nothing, because in our captures every item
 * follows all earlier ones.
 */
CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *deps,
					   const CUgraphEdgeData *edges, size_t num_deps,
					   unsigned int flags)
{
	struct CUstream_st *s;
	CUresult r = sim_stream_lock(handle, &s);

	if (r != CUDA_SUCCESS)
		return r;
	if (!s->capture)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (s->capture->is_spoilt)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/*
 * A capture reports no dependencies of the next node, because we have no handles of single nodes.
 */
static CUresult capture_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
			     CUgraph *graph, size_t *num_deps)
{
	struct CUstream_st *s;
	CUresult r = status ? sim_stream_lock(handle, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!s->capture && s == s->ctx->legacy)
		r = sim_capture_check_legacy(s->ctx);
	if (s->capture) {
		*status = s->capture->is_spoilt ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
						: CU_STREAM_CAPTURE_STATUS_ACTIVE;
		if (id)
			*id = s->capture->id;
		if (graph)
			*graph = s->capture;
		if (num_deps)
			*num_deps = 0;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
	return capture_info(handle, status, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
				CUgraph *graph, const CUgraphNode **deps,
				const CUgraphEdgeData **edges, size_t *num_deps)
{
	if (deps)
		*deps = NULL;
	if (edges)
		*edges = NULL;
	return capture_info(handle, status, id, graph, num_deps);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **deps, size_t *num_deps)
{
	if (deps)
		*deps = NULL;
	return capture_info(handle, status, id, graph, num_deps);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
