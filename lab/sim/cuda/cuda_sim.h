/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the simulated driver, libcuda.so.1. Device memory is host memory, a stream is a queue
 * with one worker thread, a context is a name that streams belong to.
 *
 * One lock, sim_lock, guards every structure below. It is never held while a queued item runs.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_DEVICES_DEFAULT 8
#define SIM_DEVICES_MAX 64

struct CUctx_st {
	struct CUctx_st *next;
	CUdevice dev;
	unsigned long long id;
	unsigned int flags;
	unsigned int primary_refs; /* of a primary context: retains not yet released */
	bool is_primary;
	bool is_alive;
	struct CUstream_st *legacy; /* the default stream, made on first use */
};

enum sim_item_kind {
	SIM_ITEM_HOST_FN,
	SIM_ITEM_WRITE32,
	SIM_ITEM_WRITE64,
	SIM_ITEM_COPY,
	SIM_ITEM_SET8,
	SIM_ITEM_SET32,
	SIM_ITEM_WAIT,
	SIM_ITEM_EVENT,
	SIM_ITEM_GRAPH,
	SIM_ITEM_KERNEL,
	/* Of graphs only; they run nothing. */
	SIM_ITEM_WAIT_EXTERNAL,
	SIM_ITEM_RECORD_EXTERNAL,
	SIM_ITEM_USER_OBJECT,
};

struct sim_item {
	struct sim_item *next;
	enum sim_item_kind kind;
	CUhostFn fn;
	void *arg;
	void *dst;
	const void *src;
	size_t count;
	uint64_t value;
	bool has_barrier;
	struct CUstream_st *wait_stream; /* holds a reference */
	uint64_t wait_seq;
	struct CUevent_st *event;       /* holds a reference */
	struct sim_nodes *nodes;        /* of a graph; holds a reference */
	struct sim_launch *launch;      /* of a kernel; holds a reference */
	struct CUuserObject_st *object; /* holds a reference */
	void *staging;                  /* what src points to, if it is the item's own */
};

struct CUstream_st {
	struct CUstream_st *next;
	struct CUctx_st *ctx;
	unsigned int flags;
	int priority;
	unsigned long long id;
	unsigned int refs;
	bool has_worker;
	bool is_destroyed;
	uint64_t submitted; /* items ever queued; the sequence number of the newest */
	uint64_t completed; /* items ever finished */
	struct sim_item *head;
	struct sim_item *tail;
	pthread_cond_t work;        /* queue is not empty any more, or the stream is destroyed */
	pthread_cond_t done;        /* completed has grown */
	struct CUgraph_st *capture; /* what is queued goes in there; NULL = the stream runs */
};

extern pthread_mutex_t sim_lock;

/* Whether calls are allowed here: initialised, not in a forked child, not in a host function. */
CUresult sim_enter(void);
/* The same, and a context is current; it comes back in @ret_ctx. */
CUresult sim_enter_ctx(struct CUctx_st **ret_ctx);
/* Marks the calling thread as running a host function, which may not call the driver. */
void sim_set_in_host_fn(bool is_inside);
int sim_device_count(void);
/* The context if it is one of ours and alive. Lock held. */
bool sim_ctx_is_valid(struct CUctx_st *ctx);

/*
 * Turns a handle (0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a created stream) into a stream.
 * Lock held.
 */
CUresult sim_stream_resolve(CUstream handle, struct CUstream_st **ret_stream);
/* Enters, locks and resolves; the lock is held on return only if the result is CUDA_SUCCESS. */
CUresult sim_stream_lock(CUstream handle, struct CUstream_st **ret_stream);
/* The same, for work that needs the stream's context to be the current one. */
CUresult sim_stream_lock_in_ctx(CUstream handle, struct CUstream_st **ret_stream);
/* Queues a copy of @item, after what the default stream's rules put before it. Lock held. */
CUresult sim_stream_submit(struct CUstream_st *s, const struct sim_item *item);
void sim_stream_ref(struct CUstream_st *s);
void sim_stream_unref(struct CUstream_st *s);
/* Calls fn for each stream that was not destroyed. Lock held. */
void sim_streams_each(void (*fn)(struct CUstream_st *s, void *arg), void *arg);
/* Runs what needs neither the lock nor the worker. */
void sim_item_run(const struct sim_item *it);
/* Blocks until item @seq of the stream has finished. Lock held, released while waiting. */
void sim_stream_wait(struct CUstream_st *s, uint64_t seq);
/* Blocks until all that was queued in @ctx before has finished. Lock held. */
void sim_ctx_drain(struct CUctx_st *ctx);

/* Called by the worker when it reaches the event's item. Lock held. */
void sim_event_reached(struct CUevent_st *event, uint64_t seq);
void sim_event_ref(struct CUevent_st *event);
void sim_event_unref(struct CUevent_st *event);
/* The event is recorded at what was queued last. Lock held. */
void sim_event_place(struct CUevent_st *event, struct CUstream_st *s);
/* The stream waits for where the event was recorded last. Lock held. */
CUresult sim_event_await(struct CUevent_st *event, struct CUstream_st *s);
/* Whether it is one that was not destroyed. Lock held. */
bool sim_event_exists(const struct CUevent_st *event);

/* Whether [addr, addr + size) is memory the device may write. Lock held. */
bool sim_memory_is_device_visible(CUdeviceptr addr, size_t size);
/* Whether it is memory of the device; else it is the host's. Lock held. */
bool sim_memory_is_device(const void *addr, size_t size);

/* ---- cuda_ipc.c ---- */

/* Whether devices can reach each other's memory, and other processes theirs. */
bool sim_has_peers(void);
/* Memory that other processes can map; NULL = there is none. Lock held, as for all of these. */
void *sim_shared_alloc(size_t size);
void sim_shared_free(void *ptr, size_t size);
/* What another process maps it by. False: it is not of that memory. */
bool sim_shared_handle(const void *ptr, size_t size, CUipcMemHandle *ret_handle);
CUresult sim_shared_map(const CUipcMemHandle *handle, void **ret_ptr, size_t *ret_size);
void sim_shared_unmap(void *ptr, size_t size);

/* ---- cuda_module.c ---- */

/* Runs a kernel, without the lock; as often as it is asked to. */
void sim_launch_run(const struct sim_launch *launch);
void sim_launch_ref(struct sim_launch *launch);
void sim_launch_unref(struct sim_launch *launch);

/* ---- cuda_graph.c ---- */

/* What a graph does, in the order of capture. Never changes once somebody else refers to it. */
struct sim_nodes {
	unsigned int refs;
	size_t count;
	struct sim_item items[];
};

/* Runs the nodes one after the other, without the lock. */
void sim_nodes_run(const struct sim_nodes *nodes);
void sim_nodes_unref(struct sim_nodes *nodes);

/* ---- cuda_capture.c ---- */

/* The item becomes a node of the graph that the stream is being captured into. Lock held. */
CUresult sim_capture_item(struct CUstream_st *s, const struct sim_item *item);
/* Another stream joins the capture, through an event. Lock held. */
CUresult sim_capture_join(struct CUstream_st *s, struct CUgraph_st *capture);
/* Something was called that a capture does not permit: it is spoilt. Lock held. */
CUresult sim_capture_spoil(struct CUgraph_st *capture, CUresult error);
/* Whether a call that could synchronise is allowed in this thread. Lock held. */
CUresult sim_capture_check_unsafe(void);
/* What goes on the default stream would wait for a blocking stream that captures. Lock held. */
CUresult sim_capture_check_legacy(struct CUctx_st *ctx);
