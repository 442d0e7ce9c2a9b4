/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that the plugin gets (NCCL's src/plugin/profiler.cc and src/enqueue.cc). The caller's
 * thread reports the start of the group with its first call, each call, and the beginning and the
 * end of the outermost ncclGroupEnd. The launching thread reports each launch: its group and its
 * collectives or sends and receives. Collectives on one rank are memory copies and cause no event.
 * NCCL 2.27 (version 4) reports the contents of a launch only if the plugin gave its group a
 * handle. 2.28 and later always report them (ncclProfilerStartTaskEvents() in plugin/profiler.cc of
 * each).
 *
 * We define the structures a second time on purpose. If we shared the agent's definitions, a
 * mistake in them would not show.
 */
#include "lab/sim/nccl_profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/sim/nccl_cuda.h"
#include "lab/sim/nccl_reduce.h"
#include "lab/sim/nccl_sim.h"

enum {
	EVENT_GROUP = 1 << 0,
	EVENT_COLL = 1 << 1,
	EVENT_P2P = 1 << 2,
	EVENT_PROXY_OP = 1 << 3,
	EVENT_PROXY_STEP = 1 << 4,
	EVENT_GROUP_API = 1 << 8,
	EVENT_COLL_API = 1 << 9,
	EVENT_P2P_API = 1 << 10,
	/* NCCL reports a group if the plugin wants groups, or anything inside groups. */
	EVENTS_OF_GROUP_API = EVENT_GROUP_API | EVENT_COLL_API | EVENT_P2P_API | EVENT_GROUP |
			      EVENT_COLL | EVENT_P2P | EVENT_PROXY_OP | EVENT_PROXY_STEP,
	STATE_GROUP_START_API_STOP = 23,
	STATE_GROUP_END_API_START = 24,
};

struct event_v5 {
	uint64_t type; /* version 4: one byte */
	void *parent;
	int rank;
	union {
		struct {
			bool is_captured;
			int depth;
		} group_api;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool is_captured;
		} coll_api;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool is_captured;
		} p2p_api;
		struct {
			uint64_t number;
			const char *func;
			const void *send;
			void *recv;
			size_t count;
			int root;
			const char *datatype;
			uint8_t channels, warps;
			const char *algo, *proto;
			void *parent_group;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t channels;
			void *parent_group;
		} p2p;
		struct {
			pid_t pid;
			uint8_t channel;
			int peer, steps, chunk_bytes, is_send;
		} proxy_op;
		struct {
			int step;
		} proxy_step;
	};
};

typedef ncclResult_t (*init_v4_fn)(void **, int *, const char *, uint64_t, int, int, int, void *);
typedef ncclResult_t (*init_v5_fn)(void **, uint64_t, int *, const char *, int, int, int, void *);

struct plugin {
	const char *name;
	void (*init)(void);
	ncclResult_t (*start_event)(void *context, void **handle, struct event_v5 *event);
	ncclResult_t (*stop_event)(void *handle);
	ncclResult_t (*record_event_state)(void *handle, int state, void *args);
	ncclResult_t (*finalize)(void *context);
};

#define NEWEST_OF_2_28 5
#define NEWEST 7

static const struct plugin *plugin;
static int plugin_version;
static int event_mask;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static __thread void *group_handle;
static __thread bool is_group_open;

static void load(void)
{
	const char *path = getenv("NCCL_PROFILER_PLUGIN");
	const char *wanted = getenv("SIM_NCCL_PROFILER");
	int version = wanted ? atoi(wanted) : NEWEST_OF_2_28;
	char symbol[] = "ncclProfiler_v0";
	void *lib;

	if (!path || strcmp(path, "none") == 0)
		return;
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		(void)sim_fail(ncclSystemError, "profiler plugin: %s", dlerror());
		return;
	}
	for (; version >= 4 && version <= NEWEST && !plugin; version--) {
		symbol[sizeof(symbol) - 2] = (char)('0' + version);
		plugin = dlsym(lib, symbol);
		plugin_version = version;
	}
}

void sim_profiler_init(ncclComm_t comm)
{
	const char *name = comm->name[0] ? comm->name : NULL;
	uint64_t hash = comm->hash;
	int nodes = 1;

	(void)pthread_once(&once, load);
	if (!plugin)
		return;
	if (plugin_version == 4)
		(void)((init_v4_fn)plugin->init)(&comm->profiler, &event_mask, name, hash, nodes,
						 comm->nranks, comm->rank, NULL);
	else
		(void)((init_v5_fn)plugin->init)(&comm->profiler, hash, &event_mask, name, nodes,
						 comm->nranks, comm->rank, NULL);
}

void sim_profiler_finalize(ncclComm_t comm)
{
	if (plugin && comm->profiler)
		(void)plugin->finalize(comm->profiler);
	comm->profiler = NULL;
}

/* The list has no unsigned bytes, like the real one. */
static const char *datatype_name(ncclDataType_t dtype)
{
	static const char *const names[] = {
		[ncclInt8] = "ncclInt8",
		[ncclInt32] = "ncclInt32",
		[ncclUint32] = "ncclUint32",
		[ncclInt64] = "ncclInt64",
		[ncclUint64] = "ncclUint64",
		[ncclFloat16] = "ncclFloat16",
		[ncclFloat32] = "ncclFloat32",
		[ncclFloat64] = "ncclFloat64",
		[ncclBfloat16] = "ncclBfloat16",
		[ncclFloat8e4m3] = "ncclFloat8e4m3",
		[ncclFloat8e5m2] = "ncclFloat8e5m2",
	};

	return (unsigned)dtype < sizeof(names) / sizeof(names[0]) && names[dtype] ? names[dtype]
										  : "Unknown";
}

static const char *func_name(enum sim_kind kind)
{
	static const char *const names[] = {
		[SIM_ALL_REDUCE] = "AllReduce",
		[SIM_BROADCAST] = "Broadcast",
		[SIM_REDUCE] = "Reduce",
		[SIM_ALL_GATHER] = "AllGather",
		[SIM_REDUCE_SCATTER] = "ReduceScatter",
		[SIM_SEND] = "Send",
		[SIM_RECV] = "Recv",
	};

	return names[kind];
}

static void *start_event(ncclComm_t comm, struct event_v5 *event)
{
	void *handle = NULL;

	event->rank = comm->rank;
	(void)plugin->start_event(comm->profiler, &handle, event);
	return handle;
}

static void start_group(ncclComm_t comm, int depth, bool is_captured)
{
	struct event_v5 event = { .type = EVENT_GROUP_API,
				  .group_api = { .is_captured = is_captured, .depth = depth } };

	is_group_open = true;
	group_handle = start_event(comm, &event);
	if (group_handle)
		(void)plugin->record_event_state(group_handle, STATE_GROUP_START_API_STOP, NULL);
}

void sim_profiler_call(const struct sim_task *t, int depth)
{
	struct event_v5 event = { 0 };
	bool is_captured;
	void *handle;

	if (!plugin || plugin_version < 5 || (t->comm->nranks == 1 && !sim_is_p2p(t)) ||
	    !(event_mask & EVENTS_OF_GROUP_API))
		return;
	is_captured = sim_cuda_is_captured(t->stream);
	if (!is_group_open)
		start_group(t->comm, depth, is_captured);
	event.parent = group_handle;
	if (sim_is_p2p(t)) {
		if (!(event_mask & (EVENT_P2P_API | EVENT_P2P)))
			return;
		event.type = EVENT_P2P_API;
		event.p2p_api.func = func_name(t->kind);
		event.p2p_api.count = t->count;
		event.p2p_api.datatype = datatype_name(t->dtype);
		event.p2p_api.stream = t->stream;
		event.p2p_api.is_captured = is_captured;
	} else {
		if (!(event_mask & (EVENT_COLL_API | EVENT_COLL)))
			return;
		event.type = EVENT_COLL_API;
		event.coll_api.func = func_name(t->kind);
		event.coll_api.count = t->count;
		event.coll_api.datatype = datatype_name(t->dtype);
		event.coll_api.root = t->root;
		event.coll_api.stream = t->stream;
		event.coll_api.is_captured = is_captured;
	}
	handle = start_event(t->comm, &event);
	if (handle)
		(void)plugin->stop_event(handle);
	((struct sim_task *)t)->profiler = handle;
}

void sim_profiler_end_begins(void)
{
	if (group_handle)
		(void)plugin->record_event_state(group_handle, STATE_GROUP_END_API_START, NULL);
}

void sim_profiler_end_is_over(void)
{
	if (group_handle)
		(void)plugin->stop_event(group_handle);
	group_handle = NULL;
	is_group_open = false;
}

/* Reports a collective in the form that NCCL launches: gathers and broadcasts move bytes. */
static void launch_coll(ncclComm_t comm, struct sim_task *t, void *group, bool is_replay)
{
	bool in_bytes = t->kind == SIM_ALL_GATHER || t->kind == SIM_BROADCAST;
	struct event_v5 event = { .type = EVENT_COLL };
	void *handle;

	event.parent = plugin_version == 4 ? group : t->profiler;
	/* NCCL does not count calls in a graph: see ncclProfilerStartTaskEvents() of 2.29.7. */
	event.coll.number = comm->profiler_numbers[t->kind];
	if (!is_replay && !sim_cuda_is_captured(t->stream))
		comm->profiler_numbers[t->kind]++;
	event.coll.func = func_name(t->kind);
	event.coll.send = t->send;
	event.coll.recv = t->recv;
	event.coll.count = in_bytes ? t->count * sim_dtype_size(t->dtype) : t->count;
	event.coll.root = t->root;
	event.coll.datatype = in_bytes ? "ncclInt8" : datatype_name(t->dtype);
	event.coll.parent_group = group;
	handle = start_event(comm, &event);
	if (handle)
		(void)plugin->stop_event(handle);
	t->launched = handle;
}

static void launch_p2p(ncclComm_t comm, struct sim_task *t, void *group)
{
	struct event_v5 event = { .type = EVENT_P2P };
	void *handle;

	event.parent = plugin_version == 4 ? group : t->profiler;
	event.p2p.func = func_name(t->kind);
	event.p2p.buff = t->kind == SIM_SEND ? (void *)t->send : t->recv;
	event.p2p.datatype = datatype_name(t->dtype);
	event.p2p.count = t->count;
	event.p2p.peer = t->root;
	event.p2p.parent_group = group;
	handle = start_event(comm, &event);
	if (handle)
		(void)plugin->stop_event(handle);
	t->launched = handle;
}

/* True if the plugin gets the proxy's events. */
static bool has_proxy(void)
{
	return plugin && (event_mask & EVENT_PROXY_OP) && getenv("SIM_NCCL_STEPS");
}

void sim_profiler_launch(ncclComm_t comm, struct sim_task *tasks, bool is_replay)
{
	int wanted = (sim_is_p2p(tasks) ? EVENT_P2P : EVENT_COLL) | EVENT_PROXY_OP;
	struct event_v5 event = { .type = EVENT_GROUP };
	bool is_wanted;
	void *group;

	if (!plugin || (comm->nranks == 1 && !sim_is_p2p(tasks)) ||
	    !(event_mask & (EVENT_GROUP | EVENT_COLL | EVENT_P2P | EVENT_PROXY_OP)))
		return;
	if (is_replay != (has_proxy() && (is_replay || sim_cuda_is_captured(tasks->stream))))
		return;
	group = start_event(comm, &event);
	is_wanted = (event_mask & wanted) && (group || plugin_version > 4);
	for (struct sim_task *t = tasks; t && is_wanted; t = t->next) {
		if (sim_is_p2p(t))
			launch_p2p(comm, t, group);
		else
			launch_coll(comm, t, group, is_replay);
	}
	if (group)
		(void)plugin->stop_event(group);
}

/* ---- the proxy ---- */

void *sim_profiler_part_start(ncclComm_t comm, const struct sim_profiler_part *part)
{
	struct event_v5 event = { .type = EVENT_PROXY_OP,
				  .parent = part->launch,
				  .proxy_op = { .pid = getpid(),
						.peer = part->peer,
						.steps = part->steps,
						.chunk_bytes = part->chunk_bytes,
						.is_send = part->is_send } };

	return has_proxy() && comm->profiler ? start_event(comm, &event) : NULL;
}

void *sim_profiler_step_start(ncclComm_t comm, void *part, int step)
{
	struct event_v5 event = { .type = EVENT_PROXY_STEP,
				  .parent = part,
				  .proxy_step = { .step = step } };

	return start_event(comm, &event);
}

void sim_profiler_step_state(void *step, int state, size_t bytes)
{
	if (step)
		(void)plugin->record_event_state(step, state, &bytes);
}

void sim_profiler_stop(void *event)
{
	if (event)
		(void)plugin->stop_event(event);
}

/* ---- NCCL's hash of communicators: eatHash() and digestHash() of src/include/bitops.h ---- */

static void eat(uint64_t acc[2], const void *bytes, size_t size)
{
	acc[0] ^= size;
	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		acc[0] += acc[1];
		acc[1] ^= acc[0];
		acc[0] ^= acc[0] >> 31;
		acc[0] *= 0x9de62bbc8cef3ce3;
		acc[1] ^= acc[1] >> 32;
		acc[1] *= 0x485cd6311b599e79;
		memcpy(&word, (const char *)bytes + at,
		       size - at < sizeof(word) ? size - at : sizeof(word));
		acc[0] += word;
	}
}

static uint64_t digest(const uint64_t acc[2])
{
	uint64_t h = (acc[0] ^ acc[0] >> 31) * 0xbac3bd562846de6b + acc[1];

	return (h ^ h >> 32) * 0x995a187a14e7b445;
}

uint64_t sim_profiler_hash(const ncclUniqueId *id)
{
	uint64_t acc[2] = { 1, 1 };

	eat(acc, id->internal, sizeof(id->internal));
	return digest(acc);
}

uint64_t sim_profiler_child_hash(uint64_t parent, int count, int color)
{
	uint64_t acc[2] = { 1, 1 };

	eat(acc, &parent, sizeof(parent));
	eat(acc, &count, sizeof(count));
	eat(acc, &color, sizeof(color));
	return digest(acc);
}
