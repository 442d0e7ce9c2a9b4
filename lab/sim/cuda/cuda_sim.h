/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the simulated driver, libcuda.so.1. Device memory is host memory, and a stream is a
 * queue with one worker thread. A context runs nothing; it only groups streams.
 *
 * One lock, sim_lock, guards every structure below. No thread holds it while a queued item runs.
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
	unsigned int primary_refs; /* for a primary context: number of retains without a release */
	bool is_primary;
	bool is_alive;
	struct CUstream_st *legacy; /* the default stream, created at first use */
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
	/* These occur only in graphs, and run nothing. */
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
	struct sim_nodes *nodes;        /* for a graph; holds a reference */
	struct sim_launch *launch;      /* for a kernel; holds a reference */
	struct CUuserObject_st *object; /* holds a reference */
	void *staging;                  /* memory that src points to, if the item owns it */
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
	uint64_t submitted; /* number of queued items; the sequence number of the newest */
	uint64_t completed; /* number of finished items */
	struct sim_item *head;
	struct sim_item *tail;
	pthread_cond_t work; /* the queue is no longer empty, or the stream is destroyed */
	pthread_cond_t done; /* completed has grown */
	/* the graph that queued items are added to; NULL = the stream runs them */
	struct CUgraph_st *capture;
};

extern pthread_mutex_t sim_lock;

/*
 * Returns CUDA_SUCCESS if this thread may call the driver: it is initialised, and we are neither in
 * a forked child nor in a host function.
 */
CUresult sim_enter(void);
/*
 * Checks the thread like sim_enter(). Returns its current context in @ret_ctx, or an error if none
 * is current and alive.
 */
CUresult sim_enter_ctx(struct CUctx_st **ret_ctx);
/*
 * Marks the calling thread as inside or outside of a host function. Inside, it must not call the
 * driver.
 */
void sim_set_in_host_fn(bool is_inside);
int sim_device_count(void);
/* True if the context is one of ours and alive. Lock held. */
bool sim_ctx_is_valid(struct CUctx_st *ctx);

/*
 * Turns a handle (0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a created stream) into a stream.
 * Lock held.
 */
CUresult sim_stream_resolve(CUstream handle, struct CUstream_st **ret_stream);
/*
 * Calls sim_enter(), takes the lock and resolves the handle. On return the lock is held only if the
 * result is CUDA_SUCCESS.
 */
CUresult sim_stream_lock(CUstream handle, struct CUstream_st **ret_stream);
/* Works like sim_stream_lock(), but fails unless the stream's context is the current one. */
CUresult sim_stream_lock_in_ctx(CUstream handle, struct CUstream_st **ret_stream);
/*
 * Queues a copy of @item, after items of other streams that must run before it by the rules of the
 * default stream. Lock held.
 */
CUresult sim_stream_submit(struct CUstream_st *s, const struct sim_item *item);
void sim_stream_ref(struct CUstream_st *s);
void sim_stream_unref(struct CUstream_st *s);
/* Calls fn for each live stream. Lock held. */
void sim_streams_each(void (*fn)(struct CUstream_st *s, void *arg), void *arg);
/* Runs an item that needs neither the lock nor the worker thread. */
void sim_item_run(const struct sim_item *it);
/* Blocks until item @seq of the stream has finished. Lock held, released while waiting. */
void sim_stream_wait(struct CUstream_st *s, uint64_t seq);
/*
 * Blocks until all items that @ctx has queued so far have finished. Lock held, released while
 * waiting.
 */
void sim_ctx_drain(struct CUctx_st *ctx);

/* Called by the worker thread when it reaches the event's item. Lock held. */
void sim_event_reached(struct CUevent_st *event, uint64_t seq);
void sim_event_ref(struct CUevent_st *event);
void sim_event_unref(struct CUevent_st *event);
/* Records the event at the newest queued item. Lock held. */
void sim_event_place(struct CUevent_st *event, struct CUstream_st *s);
/* Makes the stream wait for the event's last recording. Lock held. */
CUresult sim_event_await(struct CUevent_st *event, struct CUstream_st *s);
/* True if the event was not destroyed. Lock held. */
bool sim_event_exists(const struct CUevent_st *event);

/* True if the device may write to [addr, addr + size). Lock held. */
bool sim_memory_is_device_visible(CUdeviceptr addr, size_t size);
/* True for device memory, false for host memory. Lock held. */
bool sim_memory_is_device(const void *addr, size_t size);

/* ---- cuda_ipc.c ---- */

/* True if devices can access each other's memory, including other processes'. */
bool sim_has_peers(void);
/*
 * Returns memory that other processes can map; NULL = none left. This function and those below need
 * the lock.
 */
void *sim_shared_alloc(size_t size);
void sim_shared_free(void *ptr, size_t size);
/* Makes a handle for another process. Returns false if the memory is not shareable. */
bool sim_shared_handle(const void *ptr, size_t size, CUipcMemHandle *ret_handle);
CUresult sim_shared_map(const CUipcMemHandle *handle, void **ret_ptr, size_t *ret_size);
void sim_shared_unmap(void *ptr, size_t size);

/* ---- cuda_module.c ---- */

/* Runs a kernel. Needs no lock. Callers may run the same launch again. */
void sim_launch_run(const struct sim_launch *launch);
void sim_launch_ref(struct sim_launch *launch);
void sim_launch_unref(struct sim_launch *launch);

/* ---- cuda_graph.c ---- */

/*
 * The items of a graph, in the order of capture. They never change once there is a second reference
 * to them.
 */
struct sim_nodes {
	unsigned int refs;
	size_t count;
	struct sim_item items[];
};

/* Runs the nodes one after the other, without the lock. */
void sim_nodes_run(const struct sim_nodes *nodes);
void sim_nodes_unref(struct sim_nodes *nodes);

/* ---- cuda_capture.c ---- */

/* Makes the item a node of the graph that the stream captures into. Lock held. */
CUresult sim_capture_item(struct CUstream_st *s, const struct sim_item *item);
/* Lets another stream join the capture, because it waits for an event of the capture. Lock held. */
CUresult sim_capture_join(struct CUstream_st *s, struct CUgraph_st *capture);
/* Invalidates the capture because of a forbidden call. Returns error. Lock held. */
CUresult sim_capture_spoil(struct CUgraph_st *capture, CUresult error);
/* Returns CUDA_SUCCESS if this thread may make a potentially synchronising call. Lock held. */
CUresult sim_capture_check_unsafe(void);
/*
 * Returns an error if work on the default stream would wait for a blocking stream that captures.
 * Lock held.
 */
CUresult sim_capture_check_legacy(struct CUctx_st *ctx);
