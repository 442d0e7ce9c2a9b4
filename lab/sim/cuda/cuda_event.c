/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of the simulated driver. An event is a place in a stream: the stream and a sequence
 * number. A new recording moves the event. Earlier waiters keep waiting for the old place.
 */
#include <stdlib.h>
#include <time.h>

#include "lab/sim/cuda/cuda_sim.h"

struct CUevent_st {
	struct CUevent_st *next;
	unsigned int flags;
	unsigned int refs;
	struct CUstream_st *stream; /* the stream of the last recording; holds a reference */
	uint64_t seq;
	uint64_t reached_seq;
	uint64_t reached_ns;
	/* the graph of the last recording; only for comparison, as it may be freed */
	struct CUgraph_st *capture;
};

static struct CUevent_st *events;

void sim_event_reached(struct CUevent_st *event, uint64_t seq)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	event->reached_seq = seq;
	event->reached_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void sim_event_ref(struct CUevent_st *event)
{
	event->refs++;
}

void sim_event_unref(struct CUevent_st *event)
{
	if (--event->refs > 0)
		return;
	if (event->stream)
		sim_stream_unref(event->stream);
	free(event);
}

bool sim_event_exists(const struct CUevent_st *event)
{
	for (const struct CUevent_st *e = events; e; e = e->next) {
		if (e == event)
			return true;
	}
	return false;
}

/*
 * Checks the event and takes the lock. On return the lock is held only if the result is
 * CUDA_SUCCESS.
 */
static CUresult event_lock(CUevent handle)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	if (sim_event_exists(handle))
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_ERROR_INVALID_HANDLE;
}

static bool is_complete(const struct CUevent_st *e)
{
	return !e->stream || e->stream->completed >= e->seq;
}

void sim_event_place(struct CUevent_st *event, struct CUstream_st *s)
{
	sim_stream_ref(s);
	if (event->stream)
		sim_stream_unref(event->stream);
	event->stream = s;
	event->seq = s->submitted;
}

CUresult sim_event_await(struct CUevent_st *event, struct CUstream_st *s)
{
	struct sim_item item = { .kind = SIM_ITEM_WAIT };
	CUresult r;

	if (is_complete(event))
		return CUDA_SUCCESS;
	item.wait_stream = event->stream;
	item.wait_seq = event->seq;
	r = sim_stream_submit(s, &item);
	if (r == CUDA_SUCCESS)
		sim_stream_ref(event->stream);
	return r;
}

CUresult cuEventCreate(CUevent *ret_event, unsigned int flags)
{
	struct CUctx_st *ctx;
	struct CUevent_st *e;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_event)
		return CUDA_ERROR_INVALID_VALUE;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = flags;
	e->refs = 1;
	pthread_mutex_lock(&sim_lock);
	e->next = events;
	events = e;
	pthread_mutex_unlock(&sim_lock);
	*ret_event = e;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
	struct CUevent_st **link = &events;
	CUresult r = event_lock(event);

	if (r != CUDA_SUCCESS)
		return r;
	while (*link != event)
		link = &(*link)->next;
	*link = event->next;
	sim_event_unref(event);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
	struct sim_item item = { .kind = SIM_ITEM_EVENT, .event = event };
	struct CUstream_st *s;
	CUresult r = event_lock(event);

	if (r != CUDA_SUCCESS)
		return r;
	r = sim_stream_resolve(handle, &s);
	if (r == CUDA_SUCCESS)
		event->capture = s->capture;
	if (r == CUDA_SUCCESS && s->capture) {
		pthread_mutex_unlock(&sim_lock);
		/* an edge of the graph between nodes that run in this order anyway */
		return CUDA_SUCCESS;
	}
	if (r == CUDA_SUCCESS)
		r = sim_stream_submit(s, &item);
	if (r == CUDA_SUCCESS) {
		event->refs++; /* the queued item holds a reference */
		sim_event_place(event, s);
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/*
 * Adds a wait for an event outside of the graph. It is no edge: the launch of the graph waits for
 * the event's last recording at that time.
 */
static CUresult wait_external(struct CUstream_st *s, CUevent event)
{
	struct sim_item item = { .kind = SIM_ITEM_WAIT_EXTERNAL, .event = event };
	CUresult r;

	if (!s->capture)
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_capture_item(s, &item);
	if (r == CUDA_SUCCESS)
		sim_event_ref(event);
	return r;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
	struct CUstream_st *s;
	CUresult r = event_lock(event);

	if (r != CUDA_SUCCESS)
		return r;
	r = sim_stream_resolve(handle, &s);
	if (r == CUDA_SUCCESS && (flags & CU_EVENT_WAIT_EXTERNAL)) {
		r = wait_external(s, event);
	} else if (r == CUDA_SUCCESS && event->capture) {
		r = sim_capture_join(s, event->capture);
	} else if (r == CUDA_SUCCESS && s->capture && event->stream) {
		r = sim_capture_spoil(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	} else if (r == CUDA_SUCCESS) {
		r = sim_event_await(event, s);
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuEventQuery(CUevent event)
{
	CUresult r = event_lock(event);

	if (r != CUDA_SUCCESS)
		return r;
	r = sim_capture_check_unsafe();
	if (r == CUDA_SUCCESS)
		r = is_complete(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult r = event_lock(event);

	if (r != CUDA_SUCCESS)
		return r;
	if (event->stream)
		sim_stream_wait(event->stream, event->seq);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	CUresult r;

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	r = event_lock(start);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_unlock(&sim_lock);
	r = event_lock(end);
	if (r != CUDA_SUCCESS)
		return r;
	if (!start->stream || !end->stream ||
	    ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!is_complete(start) || !is_complete(end))
		r = CUDA_ERROR_NOT_READY;
	else
		*ms = (float)(((double)end->reached_ns - (double)start->reached_ns) / 1e6);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return elapsed(ms, start, end);
}

/* The name of this function in programs built against CUDA 12 and older. */
CUresult sim_event_elapsed_time_v1(float *ms, CUevent start,
				   CUevent end) __asm__("cuEventElapsedTime");

CUresult sim_event_elapsed_time_v1(float *ms, CUevent start, CUevent end)
{
	return elapsed(ms, start, end);
}
