/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the simulated driver. Each has a FIFO queue and a worker thread, which starts with the
 * first item. An item finishes before the next one starts. So an item that blocks (a collective
 * that waits for its peers) blocks only the items after it.
 *
 * The default stream of a context is a stream with an additional, documented order. Its items wait
 * for earlier items in the context's blocking streams, and items in these streams wait for earlier
 * ones in the default stream. Both are waits for sequence numbers that exist already, so they
 * cannot form a cycle.
 *
 * No thread spins: workers and waiters sleep on condition variables.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/cuda/cuda_sim.h"

#define PER_THREAD_STREAMS 8

static struct CUstream_st *streams; /* all streams that are not destroyed */
/* 1 and 2 are CU_STREAM_LEGACY and CU_STREAM_PER_THREAD */
static unsigned long long next_stream_id = 3;

static __thread struct CUstream_st *per_thread[PER_THREAD_STREAMS];

void sim_stream_ref(struct CUstream_st *s)
{
	s->refs++;
}

void sim_stream_unref(struct CUstream_st *s)
{
	if (--s->refs > 0)
		return;
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->done);
	free(s);
}

void sim_stream_wait(struct CUstream_st *s, uint64_t seq)
{
	bool polls =
		/* poll, like a context whose flags request no other kind of wait */
		getenv("SIM_CUDA_POLL");

	sim_stream_ref(s);
	while (s->completed < seq) {
		if (!polls) {
			pthread_cond_wait(&s->done, &sim_lock);
			continue;
		}
		pthread_mutex_unlock(&sim_lock);
		sched_yield();
		pthread_mutex_lock(&sim_lock);
	}
	sim_stream_unref(s);
}

static void run_set32(const struct sim_item *it)
{
	uint32_t *p = it->dst;

	for (size_t i = 0; i < it->count; i++)
		p[i] = (uint32_t)it->value;
}

/* Runs an item that needs no lock. */
void sim_item_run(const struct sim_item *it)
{
	if (it->has_barrier)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	switch (it->kind) {
	case SIM_ITEM_HOST_FN:
		sim_set_in_host_fn(true);
		it->fn(it->arg);
		sim_set_in_host_fn(false);
		break;
	case SIM_ITEM_WRITE32:
		__atomic_store_n((uint32_t *)it->dst, (uint32_t)it->value, __ATOMIC_RELEASE);
		break;
	case SIM_ITEM_WRITE64:
		__atomic_store_n((uint64_t *)it->dst, it->value, __ATOMIC_RELEASE);
		break;
	case SIM_ITEM_COPY:
		memmove(it->dst, it->src, it->count);
		break;
	case SIM_ITEM_SET8:
		memset(it->dst, (int)it->value, it->count);
		break;
	case SIM_ITEM_SET32:
		run_set32(it);
		break;
	case SIM_ITEM_GRAPH:
		sim_nodes_run(it->nodes);
		break;
	case SIM_ITEM_KERNEL:
		sim_set_in_host_fn(true);
		sim_launch_run(it->launch);
		sim_set_in_host_fn(false);
		break;
	case SIM_ITEM_WAIT:
	case SIM_ITEM_EVENT:
		break; /* the worker runs these items under the lock */
	case SIM_ITEM_WAIT_EXTERNAL:
	case SIM_ITEM_RECORD_EXTERNAL:
	case SIM_ITEM_USER_OBJECT:
		break; /* the launch of the graph has done the work, or there is none */
	}
}

static void *worker_main(void *arg)
{
	struct CUstream_st *s = arg;

	pthread_mutex_lock(&sim_lock);
	for (;;) {
		struct sim_item *it;

		while (!s->head && !s->is_destroyed)
			pthread_cond_wait(&s->work, &sim_lock);
		it = s->head;
		if (!it)
			break;
		pthread_mutex_unlock(&sim_lock);
		sim_item_run(it);
		pthread_mutex_lock(&sim_lock);
		if (it->kind == SIM_ITEM_WAIT) {
			sim_stream_wait(it->wait_stream, it->wait_seq);
			sim_stream_unref(it->wait_stream);
		}
		if (it->kind == SIM_ITEM_GRAPH)
			sim_nodes_unref(it->nodes);
		if (it->kind == SIM_ITEM_KERNEL)
			sim_launch_unref(it->launch);
		s->head = it->next;
		if (!s->head)
			s->tail = NULL;
		s->completed++;
		if (it->kind == SIM_ITEM_EVENT) {
			sim_event_reached(it->event, s->completed);
			sim_event_unref(it->event);
		}
		free(it->staging);
		free(it);
		pthread_cond_broadcast(&s->done);
	}
	sim_stream_unref(s);
	pthread_mutex_unlock(&sim_lock);
	return NULL;
}

static CUresult start_worker(struct CUstream_st *s)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	char name[16];
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = pthread_create(&thread, &attr, worker_main, s);
	if (r == 0) {
		snprintf(name, sizeof(name), "cuda-stream-%u", (unsigned int)(s->id % 1000));
		pthread_setname_np(thread, name);
		sim_stream_ref(s);
		s->has_worker = true;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return r == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult queue_item(struct CUstream_st *s, const struct sim_item *item)
{
	struct sim_item *it;
	CUresult r;

	if (!s->has_worker) {
		r = start_worker(s);
		if (r != CUDA_SUCCESS)
			return r;
	}
	it = malloc(sizeof(*it));
	if (!it)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*it = *item;
	it->next = NULL;
	if (s->tail)
		s->tail->next = it;
	else
		s->head = it;
	s->tail = it;
	s->submitted++;
	pthread_cond_signal(&s->work);
	return CUDA_SUCCESS;
}

static CUresult queue_wait(struct CUstream_st *s, struct CUstream_st *other)
{
	struct sim_item item = { .kind = SIM_ITEM_WAIT };
	CUresult r;

	if (other->completed == other->submitted)
		return CUDA_SUCCESS;
	item.wait_stream = other;
	item.wait_seq = other->submitted;
	r = queue_item(s, &item);
	if (r == CUDA_SUCCESS)
		sim_stream_ref(other);
	return r;
}

CUresult sim_stream_submit(struct CUstream_st *s, const struct sim_item *item)
{
	CUresult r = CUDA_SUCCESS;

	if (s->capture)
		return sim_capture_item(s, item);
	if (s == s->ctx->legacy) {
		r = sim_capture_check_legacy(s->ctx);
		for (struct CUstream_st *o = streams; o && r == CUDA_SUCCESS; o = o->next) {
			if (o != s && o->ctx == s->ctx && !(o->flags & CU_STREAM_NON_BLOCKING))
				r = queue_wait(s, o);
		}
	} else if (s->ctx->legacy && !(s->flags & CU_STREAM_NON_BLOCKING)) {
		r = queue_wait(s, s->ctx->legacy);
	}
	return r == CUDA_SUCCESS ? queue_item(s, item) : r;
}

void sim_streams_each(void (*fn)(struct CUstream_st *s, void *arg), void *arg)
{
	for (struct CUstream_st *s = streams; s; s = s->next)
		fn(s, arg);
}

void sim_ctx_drain(struct CUctx_st *ctx)
{
	struct CUstream_st *s = streams;

	/*
	 * A wait releases the lock, and the list may change meanwhile. So we start again after each
	 * wait.
	 */
	while (s) {
		if (s->ctx == ctx && s->completed < s->submitted) {
			sim_stream_wait(s, s->submitted);
			s = streams;
		} else {
			s = s->next;
		}
	}
}

static struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags, int priority)
{
	struct CUstream_st *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->flags = flags;
	s->priority = priority;
	s->id = next_stream_id++;
	s->refs = 1;
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->done, NULL);
	s->next = streams;
	streams = s;
	return s;
}

static CUresult resolve_default(struct CUctx_st *ctx, bool is_per_thread,
				struct CUstream_st **ret_stream)
{
	struct CUstream_st **slot = &ctx->legacy;

	if (is_per_thread) {
		slot = NULL;
		for (int i = 0; i < PER_THREAD_STREAMS && !slot; i++) {
			if (!per_thread[i] || per_thread[i]->ctx == ctx)
				slot = &per_thread[i];
		}
		if (!slot)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!*slot)
		*slot = stream_new(ctx, CU_STREAM_DEFAULT, 0);
	if (!*slot)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_stream = *slot;
	return CUDA_SUCCESS;
}

CUresult sim_stream_resolve(CUstream handle, struct CUstream_st **ret_stream)
{
	struct CUctx_st *ctx;
	CUresult r;

	if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
		r = sim_enter_ctx(&ctx);
		if (r != CUDA_SUCCESS)
			return r;
		return resolve_default(ctx, handle == CU_STREAM_PER_THREAD, ret_stream);
	}
	for (struct CUstream_st *s = streams; s; s = s->next) {
		if (s == handle) {
			*ret_stream = s;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_stream_lock(CUstream handle, struct CUstream_st **ret_stream)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	r = sim_stream_resolve(handle, ret_stream);
	if (r != CUDA_SUCCESS)
		pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuStreamCreateWithPriority(CUstream *ret_stream, unsigned int flags, int priority)
{
	struct CUctx_st *ctx;
	CUresult r = sim_enter_ctx(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_stream || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	*ret_stream = stream_new(ctx, flags, priority);
	pthread_mutex_unlock(&sim_lock);
	return *ret_stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *ret_stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(ret_stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream handle)
{
	struct CUstream_st **link = &streams;
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	while (*link && *link != handle)
		link = &(*link)->next;
	if (*link) {
		/*
		 * We return at once. The worker finishes the queued items and then releases the
		 * stream.
		 */
		*link = handle->next;
		handle->is_destroyed = true;
		pthread_cond_signal(&handle->work);
		sim_stream_unref(handle);
	} else {
		r = CUDA_ERROR_INVALID_HANDLE;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}
