/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent as a plugin of NCCL's profiler interface, for a NCCL that we cannot interpose
 * (NCCL_PROFILER_PLUGIN=/…/libcollwatch.so). NCCL reports its calls and launches to the plugin, and
 * we record them as the wrappers do. The interface does not carry:
 *
 * - reduction operators, addresses of collectives, uint8 as a data type, completion on the device;
 * - the creation of a communicator, because NCCL calls the plugin only after its ranks have met;
 * - the failure or simulation of a group: we count each group as launched;
 * - all-to-all, gather and scatter: NCCL reports the sends and receives that implement them;
 * - one-sided ops.
 *
 * From version 5 on NCCL reports a collective when the user calls it, as the wrappers do, and the
 * op returns with its group. NCCL knows the peer of a send or receive only at its launch, so we
 * record sends and receives then. We do not record replays of a graph's sends, because NCCL reports
 * them on some ranks only. Version 4 reports only launches. If a communicator replays collectives
 * under version 4, we stop counting its ops. We cannot tell replays of sends from launches.
 *
 * NCCL calls the plugin from the user's thread, from its own threads, and for replays from a thread
 * of the driver. The code here therefore never calls CUDA or NCCL, waits or allocates.
 *
 * A process may use wrappers and plugin at once. We must not count a call twice, so the wrappers
 * take precedence. The plugin ignores each communicator that a wrapper is creating, and each call
 * inside a wrapper.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/base/features.h"
#include "agent/base/log.h"
#include "agent/base/next_dlsym.h"
#include "agent/hooks/profiler_abi.h"
#include "agent/ops/graph_part.h"
#include "agent/ops/group.h"
#include "agent/ops/ops.h"
#include "agent/record/comms.h"
#include "agent/record/labels.h"
#include "model/signature.h"

/*
 * NCCL's context for a communicator is the address of one byte in this array. The byte's index is
 * the communicator's entry. The address differs from every NCCL handle.
 */
static char contexts[CW_REC_COMMS];

/* A set of NCCL functions without a code range. With it we never take a caller for NCCL itself. */
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
 * The handle of every event that can be a parent but whose data we do not keep. It must not be
 * NULL. If a group has no handle, NCCL 2.27 reports none of its collectives, sends and receives
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
 * True if the program also preloads another copy of this library, which sees the same calls. We
 * compare the files of two addresses, because our own exported name would also resolve to the other
 * copy's function.
 */
static bool has_twin(void)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	void *found = next ? next(RTLD_DEFAULT, "collwatch_mark_step") : NULL;
	Dl_info its, ours;

	(void)dlerror();
	return found && dladdr(found, &its) && dladdr(contexts, &ours) &&
	       its.dli_fbase != ours.dli_fbase;
}

/*
 * True if a wrapper is creating this communicator. NCCL may do so in its own thread, so we look for
 * the wrapper's entry.
 */
static bool is_wrapped(int nranks, int rank)
{
	uint32_t used = CW_LOAD(cw_record.header->comms_used);

	for (uint32_t i = 0; i < used; i++) {
		const struct cw_rec_comm *rc = &cw_record.comms[i];
		int32_t its_rank = CW_LOAD(rc->comm_rank);
		uint32_t its_size = CW_LOAD(rc->nranks);

		if (CW_LOAD(rc->state) == CW_COMM_INIT && cw_comms[i].real &&
		    (its_size == 0 || its_size == (uint32_t)nranks) &&
		    (its_rank < 0 || its_rank == rank))
			return true;
	}
	return false;
}

static bool any_open;

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
	cw_comm_bind(c, (ncclComm_t)&contexts[c]);
	cw_comm_set_state(c, CW_COMM_READY, false);
	CW_STORE(any_open, true);
	*context = &contexts[c];
	cw_features_armed();
}

/* We always report success: NCCL would print an error into the user's log. */
static ncclResult_t init(void **context, int *mask, int events, const char *name,
			 uint64_t comm_hash, int nranks, int rank)
{
	int saved_errno = errno;

	*context = NULL;
	if (cw_agent_is_disabled())
		goto out;
	if (has_twin())
		cw_log("another copy of the agent is preloaded: this one stays out");
	else if (cw_agent_live() && !is_wrapped(nranks, rank))
		open_comm(context, name, comm_hash, nranks, rank);
out:
	/* NCCL has one mask for all communicators of the process. */
	*mask = CW_LOAD(any_open) ? events : 0;
	errno = saved_errno;
	return ncclSuccess;
}

#define EVENTS_V4 (CW_NCCL_EVENT_COLL | CW_NCCL_EVENT_P2P)
#define EVENTS_V5                                                                                  \
	(CW_NCCL_EVENT_GROUP_API | CW_NCCL_EVENT_COLL_API | CW_NCCL_EVENT_P2P_API |                \
	 CW_NCCL_EVENT_P2P)

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

static bool is_context(const void *context)
{
	return (uintptr_t)context - (uintptr_t)contexts < sizeof(contexts);
}

/* The state becomes DESTROYED even after an abort, because NCCL reports the two alike. */
static ncclResult_t finalize(void *context)
{
	int saved_errno = errno;

	if (is_context(context) && cw_agent_is_armed())
		cw_comm_set_state((int)((char *)context - contexts), CW_COMM_DESTROYED, true);
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

/* NCCL passes a root with every function. We drop the root if the function has none. */
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

/* Enters an op and leaves the guard at once: NCCL may report further ops before this op returns. */
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

static void record_at_once(void *context, struct cw_op_desc *desc, bool is_captured)
{
	struct cw_op_call call;

	if (enter(&call, context, desc, is_captured))
		cw_op_leave(&call, ncclSuccess);
}

static void on_coll_api(struct outer *outer, void *context, const struct cw_nccl_event *event)
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
	 * A single call returns when its `outer` does. A call in a group needs no `outer`, because
	 * the group tracks it.
	 */
	if (outer && !outer->is_group && !outer->has_call)
		outer->has_call = enter(&outer->call, context, &desc, is_captured);
	else
		record_at_once(context, &desc, is_captured);
}

/*
 * NCCL numbers the calls. At each replay of a graph it reports the graph's calls again, each with
 * the number of the next call. It does so only on ranks whose network needs the proxy. From then on
 * the counts of the ranks differ without a fault, so we stop counting.
 */
static void watch_for_replays(int c, unsigned kind, uint64_t number)
{
	uint64_t *next = &next_number[c][kind];

	if (number < CW_LOAD(*next))
		cw_graph_uncounted(c);
	CW_STORE(*next, number + 1);
}

static void on_coll(void *context, const struct cw_nccl_event *event)
{
	struct cw_op_desc desc = {
		.kind = kind_of(event->coll.func),
		.dtype = dtype_of(event->coll.datatype),
		.count = event->coll.count,
		.send = event->coll.send,
		.recv = event->coll.recv,
	};

	desc.root_or_peer = root_of(desc.kind, event->coll.root);
	watch_for_replays((int)((char *)context - contexts), desc.kind, event->coll.number);
	record_at_once(context, &desc, false);
}

/* The op is launched, so its group cannot drop it any more. We record it outside of the group. */
static void on_p2p(void *context, const struct cw_nccl_event *event)
{
	struct cw_op_desc desc = {
		.kind = kind_of(event->p2p.func),
		.dtype = dtype_of(event->p2p.datatype),
		.count = event->p2p.count,
		.root_or_peer = event->p2p.peer,
	};
	uint32_t depth = cw_tls.group_depth;

	if (desc.kind == CW_OP_SEND)
		desc.send = event->p2p.buff;
	else
		desc.recv = event->p2p.buff;
	cw_tls.group_depth = 0;
	record_at_once(context, &desc, false);
	cw_tls.group_depth = depth;
}

/* ---- groups ---- */

/*
 * Returns NULL if CW_GROUPS threads are already inside a call. We then record each call by itself.
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
	struct outer *outer = outer_of(handle);

	if (outer && outer->is_group && state == CW_NCCL_STATE_GROUP_END_API_START &&
	    cw_agent_is_armed() && cw_tls.group)
		cw_group_launch(cw_tls.group);
	return ncclSuccess;
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
	struct outer *outer = outer_of(handle);
	int saved_errno = errno;

	if (outer)
		close_outer(outer);
	errno = saved_errno;
	return ncclSuccess;
}

/* ---- events ---- */

static bool counts(const void *context)
{
	return is_context(context) && !cw_tls.depth && cw_agent_is_armed();
}

static ncclResult_t start_v4(void *context, void **handle, const struct cw_nccl_event *event)
{
	int saved_errno = errno;

	*handle = NULL;
	if (!counts(context))
		return ncclSuccess;
	if (event->type_v4 == CW_NCCL_EVENT_GROUP)
		*handle = &some_parent;
	else if (event->type_v4 == CW_NCCL_EVENT_COLL)
		on_coll(context, event);
	else if (event->type_v4 == CW_NCCL_EVENT_P2P)
		on_p2p(context, event);
	errno = saved_errno;
	return ncclSuccess;
}

static ncclResult_t start_v5(void *context, void **handle, const struct cw_nccl_event *event)
{
	int saved_errno = errno;

	*handle = NULL;
	if (!counts(context))
		return ncclSuccess;
	switch (event->type) {
	case CW_NCCL_EVENT_GROUP_API:
		*handle = open_outer(event->group_api.depth);
		if (!*handle)
			*handle = &some_parent;
		break;
	case CW_NCCL_EVENT_GROUP:
		*handle = &some_parent;
		break;
	case CW_NCCL_EVENT_COLL_API:
		on_coll_api(outer_of(event->parent), context, event);
		*handle = &some_parent;
		break;
	case CW_NCCL_EVENT_P2P_API:
		*handle = event->p2p_api.is_captured ? &captured_p2p : &plain_p2p;
		break;
	case CW_NCCL_EVENT_P2P:
		if (event->parent != &captured_p2p)
			on_p2p(context, event);
		break;
	default:
		break;
	}
	errno = saved_errno;
	return ncclSuccess;
}

/* ---- NCCL looks up these symbols, the newest version first ---- */

#define TAIL(start)                                                                                \
	.start_event = (start), .stop_event = stop_event,                                          \
	.record_event_state = record_event_state, .finalize = finalize

extern CW_EXPORT const struct cw_nccl_profiler_v4 ncclProfiler_v4;
extern CW_EXPORT const struct cw_nccl_profiler_v5 ncclProfiler_v5, ncclProfiler_v6, ncclProfiler_v7;

const struct cw_nccl_profiler_v4 ncclProfiler_v4 = { "collwatch", init_v4, TAIL(start_v4) };
const struct cw_nccl_profiler_v5 ncclProfiler_v5 = { "collwatch", init_v5, TAIL(start_v5) };
const struct cw_nccl_profiler_v5 ncclProfiler_v6 = { "collwatch", init_v5, TAIL(start_v5) };
const struct cw_nccl_profiler_v5 ncclProfiler_v7 = { "collwatch", init_v5, TAIL(start_v5) };
