/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent as a plugin of NCCL's profiler interface, for a NCCL that we cannot interpose
 * (NCCL_PROFILER_PLUGIN=/…/libcollwatch.so). NCCL reports its calls and launches to the plugin, and
 * we record them as the wrappers do. The interface does not report:
 *
 * - reduction operators, addresses of collectives, uint8 as a data type, completion on the device;
 * - the creation of a communicator, because NCCL calls the plugin only after its ranks have met;
 * - the failure or simulation of a group: we count each group as launched;
 * - all-to-all, gather and scatter: NCCL reports the sends and receives that implement them;
 * - one-sided ops.
 *
 * From version 5 on NCCL reports a collective when the user calls it, like the wrappers. The op
 * then returns with its group. NCCL knows the peer of a send or receive only at its launch, so we
 * record sends and receives at that time. We do not record replays of a graph's sends, because NCCL
 * reports such replays on some ranks only. Version 4 reports only launches. If a communicator
 * replays collectives under version 4, we stop counting its ops. We cannot distinguish replays of
 * sends from launches.
 *
 * NCCL calls the plugin from the user's thread, from its own threads, and for replays from a thread
 * of the driver. The code in this file therefore never calls CUDA or NCCL, waits or allocates.
 *
 * A process may use wrappers and plugin at once. We must not count a call twice, so the wrappers
 * take precedence. For each communicator that a wrapper is creating, the plugin only records the
 * steps of its network connections (profiler_proxy.h). Inside a wrapper it ignores the calls of all
 * other communicators. Versions 1 to 3 do not name a communicator when it begins. Under these
 * versions we record only steps, beside the wrappers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/base/features.h"
#include "agent/base/log.h"
#include "agent/base/next_dlsym.h"
#include "agent/hooks/profiler_abi.h"
#include "agent/hooks/profiler_comms.h"
#include "agent/hooks/profiler_proxy.h"
#include "agent/ops/graph_part.h"
#include "agent/ops/group.h"
#include "agent/ops/ops.h"
#include "agent/record/comms.h"
#include "agent/record/labels.h"
#include "model/signature.h"

/*
 * A set of NCCL functions without a code range. With this set we never take a caller for NCCL
 * itself.
 */
static const struct cw_real nobody;

/* A call into NCCL that has not returned yet, or a group. */
struct outer {
	uint32_t is_used;
	bool is_group; /* the user's outermost group */
	bool has_call;
	struct cw_op_call call;
};

static struct outer outers[CW_GROUPS];

/* Handles of sends and receives. NCCL passes one of them as the parent of the launch. */
static char plain_p2p, captured_p2p;

/*
 * The handle of every event that can be a parent but whose data we do not keep. The handle must not
 * be NULL. If a group has no handle, NCCL 2.27 reports none of its collectives, sends and receives
 * (its plugin/profiler.cc, ncclProfilerStartTaskEvents()).
 */
static char some_parent;

/* For version 4: the number of the next call of each function, per communicator. */
static uint64_t next_number[CW_REC_COMMS][CW_OP__MAX];

/* ---- communicators ---- */

/* Makes the id of a communicator. Like the id from cw_comm_id_of(), it need not resist attacks. */
static uint64_t id_of(uint64_t comm_hash)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, comm_hash);

	if (cw_labels_comm_id_is_constant())
		h = cw_hash_step(h, cw_labels_job_key());
	return h ? h : 1;
}

/*
 * Returns whether the program also preloads another copy of this library, which sees the same
 * calls. We compare the files of two addresses, because our own exported name would also resolve to
 * the other copy's function.
 */
static bool has_twin(void)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	void *found = next ? next(RTLD_DEFAULT, "collwatch_mark_step") : NULL;
	Dl_info its, ours;

	(void)dlerror();
	return found && dladdr(found, &its) && dladdr(cw_profiler_contexts, &ours) &&
	       its.dli_fbase != ours.dli_fbase;
}

static bool any_open;   /* true once there was a communicator whose events we want */
static uint32_t n_open; /* communicators that have not ended */

static void note_open(void)
{
	(void)__atomic_fetch_add(&n_open, 1, __ATOMIC_RELAXED);
	CW_STORE(any_open, true);
}

static void open_comm(void **context, const char *name, uint64_t comm_hash, int nranks, int rank)
{
	const ncclConfig_t config = { .size = sizeof(config),
				      .magic = NCCL_CONFIG_MAGIC,
				      .version = 22700,
				      .blocking = NCCL_CONFIG_UNDEF_INT,
				      .commName = name };
	const struct cw_comm_birth birth = { .comm_id = id_of(comm_hash),
					     .parent = -1,
					     .nranks = nranks,
					     .rank = rank,
					     .flags = CW_REC_COMM_PROFILER,
					     .config = &config };
	int c = cw_comm_reserve(&birth);

	if (c < 0)
		return;
	CW_STORE(cw_record.comms[c].nccl_hash, comm_hash);
	memset(next_number[c], 0, sizeof(next_number[c]));
	CW_STORE(cw_record.comms[c].ready_ns, cw_now_ns());
	cw_comm_bind(c, (ncclComm_t)&cw_profiler_contexts[c]);
	cw_comm_set_state(c, CW_COMM_READY, false);
	note_open();
	*context = &cw_profiler_contexts[c];
	cw_features_armed();
}

/* Returns whether this copy of the agent is the copy that records. */
static bool is_live(void)
{
	if (cw_agent_is_disabled())
		return false;
	if (has_twin()) {
		cw_log("another copy of the agent is preloaded: this one stays out");
		return false;
	}
	return cw_agent_live();
}

/* Sets the mask of events that we want. NCCL has one mask for all communicators of the process. */
static void set_mask(int *mask, int events)
{
	*mask = CW_LOAD(any_open) ? events : 0;
}

/*
 * Initializes the plugin for a communicator. We always report success, because NCCL would print an
 * error into the user's log.
 */
static ncclResult_t init(void **context, int *mask, int events, const char *name,
			 uint64_t comm_hash, int nranks, int rank)
{
	int saved_errno = errno;

	*context = NULL;
	if (is_live()) {
		*context = cw_profiler_comms_wrapped(comm_hash, nranks, rank);
		if (*context)
			note_open();
		else
			open_comm(context, name, comm_hash, nranks, rank);
	}
	set_mask(mask, events);
	errno = saved_errno;
	return ncclSuccess;
}

#define EVENTS_PROXY (CW_NCCL_EVENT_PROXY_OP | CW_NCCL_EVENT_PROXY_STEP)
#define EVENTS_V4 (CW_NCCL_EVENT_COLL | CW_NCCL_EVENT_P2P | EVENTS_PROXY)
#define EVENTS_V5                                                                                  \
	(CW_NCCL_EVENT_GROUP_API | CW_NCCL_EVENT_COLL_API | CW_NCCL_EVENT_P2P_API |                \
	 CW_NCCL_EVENT_P2P | EVENTS_PROXY)

static ncclResult_t init_v3(void **context, int *mask)
{
	int saved_errno = errno;

	*context = is_live() ? cw_profiler_comms_unnamed() : NULL;
	if (*context)
		note_open();
	set_mask(mask, EVENTS_V4);
	errno = saved_errno;
	return ncclSuccess;
}

static ncclResult_t init_v4(void **context, int *mask, const char *name, uint64_t comm_hash,
			    int nnodes, int nranks, int rank, void *log)
{
	return init(context, mask, EVENTS_V4, name, comm_hash, nranks, rank);
}

static ncclResult_t init_v5(void **context, uint64_t comm_hash, int *mask, const char *name,
			    int nnodes, int nranks, int rank, void *log)
{
	return init(context, mask, EVENTS_V5, name, comm_hash, nranks, rank);
}

/*
 * Ends a communicator. Its state becomes DESTROYED even after an abort, because NCCL reports both
 * alike.
 */
static ncclResult_t finalize(void *context)
{
	struct cw_profiler_comm comm = cw_profiler_comms_of(context);
	int saved_errno = errno;
	bool is_last;

	if (!cw_agent_is_armed() || (comm.entry < 0 && !comm.is_wrapped))
		return ncclSuccess;
	if (comm.is_wrapped)
		(void)cw_profiler_comms_end(context);
	else
		cw_comm_set_state(comm.entry, CW_COMM_DESTROYED, true);
	is_last = __atomic_sub_fetch(&n_open, 1, __ATOMIC_RELAXED) == 0;
	if (comm.entry >= 0)
		cw_profiler_proxy_forget(comm.entry);
	/*
	 * The last proxy thread of this process also served ops of other processes. Close those,
	 * too.
	 */
	if (is_last)
		cw_profiler_proxy_forget(-1);
	errno = saved_errno;
	return ncclSuccess;
}

/* ---- ops ---- */

static const struct {
	const char *name;
	uint8_t kind;
} functions[] = {
	{ "AllReduce", CW_OP_ALL_REDUCE },
	{ "AllGather", CW_OP_ALL_GATHER },
	{ "ReduceScatter", CW_OP_REDUCE_SCATTER },
	{ "Broadcast", CW_OP_BROADCAST },
	{ "Reduce", CW_OP_REDUCE },
	{ "AlltoAll", CW_OP_ALL_TO_ALL },
	{ "Gather", CW_OP_GATHER },
	{ "Scatter", CW_OP_SCATTER },
	{ "Send", CW_OP_SEND },
	{ "Recv", CW_OP_RECV },
};

static const struct {
	const char *name;
	uint8_t dtype;
} datatypes[] = {
	{ "ncclInt8", CW_DTYPE_INT8 },           { "ncclInt32", CW_DTYPE_INT32 },
	{ "ncclUint32", CW_DTYPE_UINT32 },       { "ncclInt64", CW_DTYPE_INT64 },
	{ "ncclUint64", CW_DTYPE_UINT64 },       { "ncclFloat16", CW_DTYPE_FP16 },
	{ "ncclFloat32", CW_DTYPE_FP32 },        { "ncclFloat64", CW_DTYPE_FP64 },
	{ "ncclBfloat16", CW_DTYPE_BF16 },       { "ncclFloat8e4m3", CW_DTYPE_FP8_E4M3 },
	{ "ncclFloat8e5m2", CW_DTYPE_FP8_E5M2 },
};

static uint8_t kind_of(const char *name)
{
	for (unsigned i = 0; name && i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].kind;
	}
	return CW_OP_NONE;
}

static int dtype_of(const char *name)
{
	for (unsigned i = 0; name && i < sizeof(datatypes) / sizeof(datatypes[0]); i++) {
		if (strcmp(datatypes[i].name, name) == 0)
			return datatypes[i].dtype;
	}
	return CW_DTYPE_NONE;
}

/*
 * Returns the root of an op. NCCL passes a root with every function, so we drop it if the function
 * has none.
 */
static int root_of(unsigned kind, int root)
{
	switch (kind) {
	case CW_OP_BROADCAST:
	case CW_OP_REDUCE:
	case CW_OP_GATHER:
	case CW_OP_SCATTER:
		return root;
	default:
		return CW_PEER_NONE;
	}
}

/*
 * Enters an op and leaves the guard of cw_tls.depth at once, because NCCL may report further ops
 * before this op returns.
 */
static bool enter(struct cw_op_call *call, void *context, struct cw_op_desc *desc, bool is_captured)
{
	if (desc->kind == CW_OP_NONE) {
		cw_record_drop(CW_REC_DROP_UNKNOWN_CALLS);
		return false;
	}
	desc->redop = CW_REDOP_NONE;
	desc->comm = context;
	if (!cw_op_enter(call, &nobody, NULL, desc))
		return false;
	cw_leave();
	if (is_captured && call->comm >= 0)
		cw_ops_finish(call->comm, call->ring_ticket, call->comm_ticket, 0, ncclSuccess,
			      CW_OPF_CAPTURED, 0);
	return true;
}

static int entry_of(void *context)
{
	return cw_profiler_comms_of(context).entry;
}

/* Returns the handle of the call, for the launches that result from it. */
static void *handle_of(void *context, const struct cw_op_call *call, bool is_captured)
{
	return cw_profiler_call(entry_of(context), call->op_index, cw_op_is_p2p(call->kind),
				is_captured);
}

static void *record_at_once(void *context, struct cw_op_desc *desc, bool is_captured)
{
	struct cw_op_call call;

	if (!enter(&call, context, desc, is_captured))
		return &some_parent;
	cw_op_leave(&call, ncclSuccess);
	return handle_of(context, &call, is_captured);
}

static void *on_coll_api(struct outer *outer, void *context, const struct cw_nccl_event *event)
{
	struct cw_op_desc desc = {
		.kind = kind_of(event->coll_api.func),
		.dtype = dtype_of(event->coll_api.datatype),
		.count = event->coll_api.count,
		.stream = event->coll_api.stream,
	};
	bool is_captured = event->coll_api.is_captured;

	desc.root_or_peer = root_of(desc.kind, event->coll_api.root);
	/*
	 * A single call returns when NCCL's own group around it ends, so we store the op in
	 * `outer`. A call in a user's group needs no `outer`, because the group tracks it.
	 */
	if (!outer || outer->is_group || outer->has_call)
		return record_at_once(context, &desc, is_captured);
	outer->has_call = enter(&outer->call, context, &desc, is_captured);
	return outer->has_call ? handle_of(context, &outer->call, is_captured) : &some_parent;
}

/*
 * Stops counting if NCCL replays a graph. NCCL numbers the calls. At each replay of a graph it
 * reports the graph's calls again, each with the number of the next call. It does so only on ranks
 * whose network needs the proxy. From then on the counts of the ranks differ without a fault.
 */
static void watch_for_replays(int c, unsigned kind, uint64_t number)
{
	uint64_t *next = &next_number[c][kind];

	if (number < CW_LOAD(*next))
		cw_graph_uncounted(c);
	CW_STORE(*next, number + 1);
}

static void *on_coll(void *context, const struct cw_nccl_event *event)
{
	struct cw_op_desc desc = {
		.kind = kind_of(event->coll.func),
		.dtype = dtype_of(event->coll.datatype),
		.count = event->coll.count,
		.send = event->coll.send,
		.recv = event->coll.recv,
	};

	desc.root_or_peer = root_of(desc.kind, event->coll.root);
	watch_for_replays(entry_of(context), desc.kind, event->coll.number);
	return record_at_once(context, &desc, false);
}

/*
 * Records a send or receive at its launch. Its group cannot drop the op any more, so we record the
 * op outside of the group.
 */
static void *on_p2p(void *context, const struct cw_nccl_event *event)
{
	struct cw_op_desc desc = {
		.kind = kind_of(event->p2p.func),
		.dtype = dtype_of(event->p2p.datatype),
		.count = event->p2p.count,
		.root_or_peer = event->p2p.peer,
	};
	uint32_t depth = cw_tls.group_depth;
	void *handle;

	if (desc.kind == CW_OP_SEND)
		desc.send = event->p2p.buff;
	else
		desc.recv = event->p2p.buff;
	cw_tls.group_depth = 0;
	handle = record_at_once(context, &desc, false);
	cw_tls.group_depth = depth;
	return handle;
}

/* ---- groups ---- */

/*
 * Returns a free entry for a call; NULL if CW_GROUPS threads are already inside a call. We then
 * record each call by itself.
 */
static struct outer *open_outer(int depth)
{
	for (unsigned i = 0; i < CW_GROUPS; i++) {
		struct outer *outer = &outers[i];
		uint32_t unused = 0;

		if (!__atomic_compare_exchange_n(&outer->is_used, &unused, 1, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		outer->has_call = false;
		outer->is_group = depth > 1 && !cw_tls.group_depth;
		if (outer->is_group) {
			cw_tls.group_depth = 1;
			cw_group_begin();
		}
		return outer;
	}
	return NULL;
}

static struct outer *outer_of(void *handle)
{
	uintptr_t at = (uintptr_t)handle - (uintptr_t)outers;

	return at < sizeof(outers) ? handle : NULL;
}

static ncclResult_t record_event_state(void *handle, int state, void *args)
{
	struct outer *outer;

	if (!cw_agent_is_armed() || cw_profiler_proxy_state(handle, state, args))
		return ncclSuccess;
	outer = outer_of(handle);
	if (outer && outer->is_group && state == CW_NCCL_STATE_GROUP_END_API_START && cw_tls.group)
		cw_group_launch(cw_tls.group);
	return ncclSuccess;
}

/* Versions 1 to 3 pass no usable arguments with the states of a step. */
static ncclResult_t record_event_state_v3(void *handle, int state, void *args)
{
	return record_event_state(handle, state, NULL);
}

static void close_outer(struct outer *outer)
{
	if (outer->is_group) {
		cw_tls.group_depth = 0;
		if (cw_tls.group && cw_agent_is_armed())
			cw_group_finish(cw_tls.group, ncclSuccess, true);
	} else if (outer->has_call && cw_agent_is_armed()) {
		cw_op_leave(&outer->call, ncclSuccess);
	}
	__atomic_store_n(&outer->is_used, 0, __ATOMIC_RELEASE);
}

static ncclResult_t stop_event(void *handle)
{
	struct outer *outer;
	int saved_errno;

	if (cw_agent_is_armed() && cw_profiler_proxy_stop(handle))
		return ncclSuccess;
	outer = outer_of(handle);
	saved_errno = errno;
	if (outer)
		close_outer(outer);
	errno = saved_errno;
	return ncclSuccess;
}

/* ---- communicators whose calls the wrappers record ---- */

/* Handles a call that NCCL reports while a wrapper records the same call. */
static void *on_wrapped_call(void *context, bool is_p2p, bool is_captured)
{
	int entry;
	const struct cw_rec_op *op = cw_profiler_comms_current(&entry);

	if (!op)
		return &some_parent;
	cw_profiler_comms_confirm(context, entry);
	return cw_profiler_call(entry, CW_LOAD(op->publish), is_p2p, is_captured);
}

/*
 * Handles a launch of version 4 or earlier. NCCL launches a single call inside the call's wrapper,
 * and a group inside the wrapper of its end.
 */
static void *on_wrapped_launch(void *context, unsigned kind, const void *send, const void *recv)
{
	int entry;
	const struct cw_rec_op *op = cw_profiler_comms_current(&entry);

	if (op && !(CW_LOAD(op->flags) & CW_OPF_GROUPED))
		cw_profiler_comms_confirm(context, entry);
	entry = entry_of(context);
	return entry < 0 ? &some_parent : cw_profiler_find_call(entry, kind, send, recv);
}

static void *on_wrapped_v5(void *context, const struct cw_nccl_event *event)
{
	void *handle = NULL;

	switch (event->type) {
	case CW_NCCL_EVENT_GROUP_API:
	case CW_NCCL_EVENT_GROUP:
		return &some_parent;
	case CW_NCCL_EVENT_COLL_API:
		return on_wrapped_call(context, false, event->coll_api.is_captured);
	case CW_NCCL_EVENT_P2P_API:
		return on_wrapped_call(context, true, event->p2p_api.is_captured);
	case CW_NCCL_EVENT_COLL:
	case CW_NCCL_EVENT_P2P:
		handle = cw_profiler_launch(event->parent);
		return handle ? handle : &some_parent;
	default:
		return NULL;
	}
}

static void *on_wrapped_v4(void *context, const struct cw_nccl_event *event)
{
	unsigned kind;

	switch (event->type_v4) {
	case CW_NCCL_EVENT_GROUP:
		return &some_parent;
	case CW_NCCL_EVENT_COLL:
		return on_wrapped_launch(context, kind_of(event->coll.func), event->coll.send,
					 event->coll.recv);
	case CW_NCCL_EVENT_P2P:
		kind = kind_of(event->p2p.func);
		return on_wrapped_launch(context, kind, kind == CW_OP_SEND ? event->p2p.buff : NULL,
					 kind == CW_OP_SEND ? NULL : event->p2p.buff);
	default:
		return NULL;
	}
}

/* ---- events ---- */

/*
 * Returns whether the plugin records this call. It does if the plugin made the entry of the
 * communicator, and no wrapper records the same call.
 */
static bool counts(struct cw_profiler_comm comm)
{
	return comm.entry >= 0 && !cw_tls.depth;
}

static void *on_own_v4(void *context, const struct cw_nccl_event *event)
{
	switch (event->type_v4) {
	case CW_NCCL_EVENT_GROUP:
		return &some_parent;
	case CW_NCCL_EVENT_COLL:
		return on_coll(context, event);
	case CW_NCCL_EVENT_P2P:
		return on_p2p(context, event);
	default:
		return NULL;
	}
}

static void *on_own_v5(void *context, const struct cw_nccl_event *event)
{
	void *handle = NULL;

	switch (event->type) {
	case CW_NCCL_EVENT_GROUP_API:
		handle = open_outer(event->group_api.depth);
		return handle ? handle : &some_parent;
	case CW_NCCL_EVENT_GROUP:
		return &some_parent;
	case CW_NCCL_EVENT_COLL_API:
		return on_coll_api(outer_of(event->parent), context, event);
	case CW_NCCL_EVENT_COLL:
		handle = cw_profiler_launch(event->parent);
		return handle ? handle : &some_parent;
	case CW_NCCL_EVENT_P2P_API:
		return event->p2p_api.is_captured ? &captured_p2p : &plain_p2p;
	case CW_NCCL_EVENT_P2P:
		if (event->parent != &captured_p2p)
			return on_p2p(context, event);
		return cw_profiler_call(entry_of(context), 0, true, true);
	default:
		return NULL;
	}
}

typedef void *(*start_fn)(void *context, const struct cw_nccl_event *event);

/*
 * Starts an event of version 4 or later. NCCL's proxy threads raise the steps, so these come first
 * and read nothing else.
 */
static inline ncclResult_t start(void *context, void **handle, const struct cw_nccl_event *event,
				 uint64_t type, start_fn on_wrapped, start_fn on_own)
{
	struct cw_profiler_comm comm;
	int saved_errno;

	*handle = NULL;
	if (!cw_agent_is_armed())
		return ncclSuccess;
	if (type == CW_NCCL_EVENT_PROXY_STEP) {
		*handle = cw_profiler_proxy_step(event->parent, &event->proxy_step);
		return ncclSuccess;
	}
	if (type == CW_NCCL_EVENT_PROXY_OP) {
		*handle = cw_profiler_proxy_op(context, event->parent, event->rank,
					       &event->proxy_op, true);
		return ncclSuccess;
	}
	saved_errno = errno;
	comm = cw_profiler_comms_of(context);
	if (comm.is_wrapped)
		*handle = on_wrapped(context, event);
	else if (counts(comm))
		*handle = on_own(context, event);
	errno = saved_errno;
	return ncclSuccess;
}

static ncclResult_t start_v4(void *context, void **handle, const struct cw_nccl_event *event)
{
	return start(context, handle, event, event->type_v4, on_wrapped_v4, on_own_v4);
}

static ncclResult_t start_v5(void *context, void **handle, const struct cw_nccl_event *event)
{
	return start(context, handle, event, event->type, on_wrapped_v5, on_own_v5);
}

/* Converts the number of a function, in the order of ncclFunc_t in NCCL 2.23. */
static unsigned kind_of_v1(uint8_t func)
{
	static const uint8_t kinds[] = { CW_OP_BROADCAST,      CW_OP_REDUCE,     CW_OP_ALL_GATHER,
					 CW_OP_REDUCE_SCATTER, CW_OP_ALL_REDUCE, CW_OP_NONE,
					 CW_OP_SEND,           CW_OP_RECV };

	return func < sizeof(kinds) ? kinds[func] : CW_OP_NONE;
}

static void *on_launch_v3(void *context, const struct cw_nccl_event_v3 *event, bool is_v1)
{
	unsigned kind;

	if (event->type == CW_NCCL_EVENT_COLL) {
		cw_profiler_comms_name(context, event->coll.comm_hash, event->rank);
		kind = is_v1 ? kind_of_v1(event->coll.func_v1) : kind_of(event->coll.func);
		return on_wrapped_launch(context, kind, event->coll.send, event->coll.recv);
	}
	cw_profiler_comms_name(context, event->p2p.comm_hash, event->rank);
	kind = is_v1 ? kind_of_v1(event->p2p.func_v1) : kind_of(event->p2p.func);
	return on_wrapped_launch(context, kind, kind == CW_OP_SEND ? event->p2p.buff : NULL,
				 kind == CW_OP_SEND ? NULL : event->p2p.buff);
}

static ncclResult_t start_before_v4(void *context, void **handle,
				    const struct cw_nccl_event_v3 *event, bool is_v1)
{
	int saved_errno = errno;

	*handle = NULL;
	if (!cw_agent_is_armed())
		return ncclSuccess;
	switch (event->type) {
	case CW_NCCL_EVENT_PROXY_STEP:
		*handle = cw_profiler_proxy_step(event->parent, &event->proxy_step);
		break;
	case CW_NCCL_EVENT_PROXY_OP:
		*handle = cw_profiler_proxy_op(context, event->parent, event->rank,
					       &event->proxy_op, false);
		break;
	case CW_NCCL_EVENT_GROUP:
		*handle = &some_parent;
		break;
	case CW_NCCL_EVENT_COLL:
	case CW_NCCL_EVENT_P2P:
		*handle = on_launch_v3(context, event, is_v1);
		break;
	default:
		break;
	}
	errno = saved_errno;
	return ncclSuccess;
}

static ncclResult_t start_v1(void *context, void **handle, const struct cw_nccl_event_v3 *event)
{
	return start_before_v4(context, handle, event, true);
}

static ncclResult_t start_v3(void *context, void **handle, const struct cw_nccl_event_v3 *event)
{
	return start_before_v4(context, handle, event, false);
}

/* ---- NCCL looks up these symbols, the newest version first ---- */

#define TAIL(start, state)                                                                         \
	.start_event = (start), .stop_event = stop_event, .record_event_state = (state),           \
	.finalize = finalize

extern CW_EXPORT const struct cw_nccl_profiler_v3 ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern CW_EXPORT const struct cw_nccl_profiler_v4 ncclProfiler_v4;
extern CW_EXPORT const struct cw_nccl_profiler_v5 ncclProfiler_v5, ncclProfiler_v6, ncclProfiler_v7;

#define V3(start)                                                                                  \
	{                                                                                          \
		"collwatch", init_v3, TAIL(start, record_event_state_v3)                           \
	}
#define V5                                                                                         \
	{                                                                                          \
		"collwatch", init_v5, TAIL(start_v5, record_event_state)                           \
	}

const struct cw_nccl_profiler_v3 ncclProfiler_v1 = V3(start_v1);
const struct cw_nccl_profiler_v3 ncclProfiler_v2 = V3(start_v3);
const struct cw_nccl_profiler_v3 ncclProfiler_v3 = V3(start_v3);
const struct cw_nccl_profiler_v4 ncclProfiler_v4 = { "collwatch", init_v4,
						     TAIL(start_v4, record_event_state) };
const struct cw_nccl_profiler_v5 ncclProfiler_v5 = V5;
const struct cw_nccl_profiler_v5 ncclProfiler_v6 = V5;
const struct cw_nccl_profiler_v5 ncclProfiler_v7 = V5;
