/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's handling of events of NCCL's profiler interface. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/hooks/profiler_abi.h"
#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/signature.h"
#include "tests/support/agent/agent_fake_nccl.h"

extern const struct cw_nccl_profiler_v4 ncclProfiler_v4;
extern const struct cw_nccl_profiler_v5 ncclProfiler_v5, ncclProfiler_v6, ncclProfiler_v7;

#define V5 ncclProfiler_v5
#define EVENT_GROUP 1
#define PROXY (1 << 3 | 1 << 4)

static int mask;

static void *open_comm(uint64_t hash)
{
	void *context = NULL;

	mask = 0;
	cr_assert_eq(V5.init(&context, hash, &mask, "tp_group", 1, 4, 1, NULL), ncclSuccess);
	cr_assert_not_null(context);
	return context;
}

static void *start_event(void *context, struct cw_nccl_event event)
{
	void *handle = (void *)-1;

	errno = 17;
	cr_assert_eq(V5.start_event(context, &handle, &event), ncclSuccess);
	cr_assert_eq(errno, 17);
	return handle;
}

static void *start_group(void *context, int depth)
{
	return start_event(context, (struct cw_nccl_event){ .type = CW_NCCL_EVENT_GROUP_API,
							    .group_api.depth = depth });
}

static void call_captured(void *context, void *group, const char *func, size_t count,
			  bool is_captured)
{
	(void)start_event(context,
			  (struct cw_nccl_event){ .type = CW_NCCL_EVENT_COLL_API,
						  .parent = group,
						  .coll_api = { .func = func,
								.count = count,
								.datatype = "ncclFloat32",
								.root = 3,
								.is_captured = is_captured } });
}

static void call(void *context, void *group, const char *func, size_t count)
{
	call_captured(context, group, func, count, false);
}

static void *p2p_call(void *context, void *group, bool is_captured)
{
	return start_event(context,
			   (struct cw_nccl_event){ .type = CW_NCCL_EVENT_P2P_API,
						   .parent = group,
						   .p2p_api = { .func = "Send",
								.count = 5,
								.datatype = "ncclInt64",
								.is_captured = is_captured } });
}

static void launch_send(void *context, void *parent, int peer)
{
	(void)start_event(context, (struct cw_nccl_event){ .type = CW_NCCL_EVENT_P2P,
							   .parent = parent,
							   .p2p = { .func = "Send",
								    .buff = handles,
								    .datatype = "ncclInt64",
								    .count = 5,
								    .peer = peer } });
}

static struct cw_rec_comm *of(void *context)
{
	return entry((ncclComm_t)context);
}

Test(agent_profiler, knows_a_communicator_from_its_hash)
{
	struct cw_rec_comm *a = of(open_comm(0x1234)), *b;

	cr_assert_eq(a->state, CW_COMM_READY);
	cr_assert_eq(a->nranks, 4);
	cr_assert_eq(a->comm_rank, 1);
	cr_assert_eq(a->nccl_hash, 0x1234);
	cr_assert_neq(a->comm_id, 0);
	cr_assert_str_eq(a->name, "tp_group");
	cr_assert(a->flags & CW_REC_COMM_PROFILER);
	cr_assert_not(a->flags & CW_REC_COMM_NONBLOCKING);
	cr_assert_eq(mask, 1 << 2 | 1 << 8 | 1 << 9 | 1 << 10 | PROXY);
	b = of(open_comm(0x1234)); /* two shrinks of one parent collide in NCCL's hash */
	cr_assert_eq(b->comm_id, a->comm_id);
	cr_assert_eq(b->instance, 1);
}

Test(agent_profiler, forgets_it_when_nccl_does)
{
	void *context = open_comm(7);
	struct cw_rec_comm *rc = of(context);

	cr_assert_eq(V5.finalize(context), ncclSuccess);
	cr_assert_eq(rc->state, CW_COMM_DESTROYED);
	call(context, NULL, "AllReduce", 1);
	cr_assert_eq(rc->op_index, 0);
}

Test(agent_profiler, shows_a_call_as_entered_until_its_group_is_over)
{
	void *context = open_comm(1), *group = start_group(context, 1);
	struct cw_rec_comm *rc = of(context);

	call(context, group, "AllReduce", 10);
	cr_assert_eq(rc->coll_entered, 1);
	cr_assert_eq(rc->coll_returned, 0);
	cr_assert_not(last(rc)->flags & (CW_OPF_RETURNED | CW_OPF_QUEUED | CW_OPF_GROUPED));
	V5.record_event_state(group, CW_NCCL_STATE_GROUP_END_API_START, NULL);
	cr_assert_not(last(rc)->flags & CW_OPF_RETURNED);
	V5.stop_event(group);
	cr_assert_eq(rc->coll_returned, 1);
	cr_assert(last(rc)->flags & CW_OPF_RETURNED);
	cr_assert_eq(last(rc)->redop, CW_REDOP_NONE, "not told");
	cr_assert_eq(last(rc)->progress_slot, CW_REC_NO_SLOT, "not told");
	cr_assert_eq(rc->hash, cw_hash_commit(CW_HASH_INIT,
					      cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32,
							   CW_REDOP_NONE, CW_PEER_NONE, 10, 40)));
}

Test(agent_profiler, takes_a_root_only_where_there_is_one)
{
	void *context = open_comm(1);

	call(context, NULL, "AllGather", 1);
	cr_assert_eq(last(of(context))->root_or_peer, CW_PEER_NONE);
	call(context, NULL, "Reduce", 1);
	cr_assert_eq(last(of(context))->root_or_peer, 3);
}

Test(agent_profiler, queues_the_calls_of_a_group_until_its_end)
{
	void *context = open_comm(1), *group = start_group(context, 2);
	struct cw_rec_comm *rc = of(context);

	call(context, group, "AllReduce", 1);
	call(context, group, "Broadcast", 2);
	cr_assert(last(rc)->flags & CW_OPF_QUEUED);
	cr_assert_eq(last(rc)->seq, 2);
	cr_assert_eq(rc->coll_entered, 0);
	V5.record_event_state(group, CW_NCCL_STATE_GROUP_END_API_START, NULL);
	cr_assert_not(last(rc)->flags & CW_OPF_QUEUED);
	cr_assert_eq(rc->coll_entered, 2);
	cr_assert_eq(rc->coll_returned, 0);
	V5.stop_event(group);
	cr_assert_eq(rc->coll_returned, 2);
	cr_assert_eq(cw_tls.group_depth, 0);
	cr_assert_null(cw_tls.group);
}

Test(agent_profiler, records_a_send_when_its_peer_is_known)
{
	void *context = open_comm(1), *group = start_group(context, 2), *api;
	struct cw_rec_comm *rc = of(context);

	api = p2p_call(context, group, false);
	V5.stop_event(api);
	cr_assert_eq(rc->op_index, 0);
	V5.record_event_state(group, CW_NCCL_STATE_GROUP_END_API_START, NULL);
	launch_send(context, api, 2);
	cr_assert_eq(last(rc)->kind, CW_OP_SEND);
	cr_assert_eq(last(rc)->root_or_peer, 2);
	cr_assert_eq(last(rc)->bytes, 40);
	cr_assert_eq(last(rc)->seq, 1);
	V5.stop_event(group);
	cr_assert_eq(rc->p2p_total[0], 1);
}

Test(agent_profiler, records_no_replayed_send)
{
	void *context = open_comm(1), *api = p2p_call(context, NULL, true);

	launch_send(context, api, 2);
	launch_send(context, api, 2);
	cr_assert_eq(of(context)->op_index, 0);
}

Test(agent_profiler, marks_what_goes_into_a_graph)
{
	void *context = open_comm(1);

	call_captured(context, NULL, "AllReduce", 1, true);
	cr_assert(last(of(context))->flags & CW_OPF_CAPTURED);
	call(context, NULL, "AllReduce", 1);
	cr_assert_not(last(of(context))->flags & CW_OPF_CAPTURED);
}

Test(agent_profiler, says_what_it_does_not_know)
{
	void *context = open_comm(1);
	struct cw_nccl_event event = {
		.type = CW_NCCL_EVENT_COLL_API,
		.coll_api = { .func = "AllReduce", .count = 3, .datatype = "Unknown" }
	};

	(void)start_event(context, event);
	cr_assert_eq(last(of(context))->dtype, CW_DTYPE_NONE);
	cr_assert_eq(last(of(context))->bytes, 0);
	call(context, NULL, "AllReduceOfTomorrow", 1);
	cr_assert_eq(of(context)->op_index, 1);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_UNKNOWN_CALLS], 1);
	event.coll_api.func = event.coll_api.datatype = NULL;
	(void)start_event(context, event);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_UNKNOWN_CALLS], 2);
}

Test(agent_profiler, leaves_other_events_alone)
{
	void *context = open_comm(1);

	for (unsigned bit = 0; bit < 32; bit++) {
		uint64_t type = UINT64_C(1) << bit;

		if (type == EVENT_GROUP || type == CW_NCCL_EVENT_COLL ||
		    type == CW_NCCL_EVENT_P2P || type == CW_NCCL_EVENT_PROXY_OP ||
		    (type >= CW_NCCL_EVENT_GROUP_API && type <= CW_NCCL_EVENT_P2P_API))
			continue;
		cr_assert_null(start_event(context, (struct cw_nccl_event){ .type = type }));
	}
	cr_assert_eq(of(context)->op_index, 0);
	V5.stop_event(NULL);
	V5.stop_event(context);
	V5.record_event_state(NULL, 24, NULL);
	V5.finalize(NULL);
}

Test(agent_profiler, version_4_tells_of_launches)
{
	struct cw_nccl_event event = { .coll = { .func = "Broadcast",
						 .send = handles,
						 .recv = handles,
						 .count = 64,
						 .root = 2,
						 .datatype = "ncclInt8" } };
	void *context = NULL, *handle = (void *)-1;
	struct cw_rec_comm *rc;

	cr_assert_eq(ncclProfiler_v4.init(&context, &mask, NULL, 9, 1, 4, 1, NULL), ncclSuccess);
	cr_assert_eq(mask, 1 << 1 | 1 << 2 | PROXY);
	rc = of(context);
	event.type = 0xffffffffffffff00; /* only one byte of it was written */
	event.type_v4 = CW_NCCL_EVENT_COLL;
	ncclProfiler_v4.start_event(context, &handle, &event);
	cr_assert_not_null(handle, "the parent of the proxy's ops");
	cr_assert_eq(rc->coll_returned, 1);
	cr_assert_eq(last(rc)->bytes, 64);
	cr_assert_eq(last(rc)->root_or_peer, 2);
	cr_assert(last(rc)->flags & CW_OPF_IN_PLACE);
	event = (struct cw_nccl_event){
		.p2p = { .func = "Recv", .datatype = "ncclInt8", .count = 8, .peer = 3 }
	};
	event.type_v4 = CW_NCCL_EVENT_P2P;
	ncclProfiler_v4.start_event(context, &handle, &event);
	cr_assert_eq(rc->p2p_total[1], 1);
}

/* Version 4 has one byte of a type. */
static void *parent_of_v4(void *context)
{
	struct cw_nccl_event event = { .type = 0xffffffffffffff00 };
	void *handle = NULL;

	event.type_v4 = EVENT_GROUP;
	cr_assert_eq(ncclProfiler_v4.start_event(context, &handle, &event), ncclSuccess);
	return handle;
}

/* NCCL 2.27 starts collectives, sends and receives under a handle alone. */
Test(agent_profiler, gives_a_handle_to_what_others_are_told_under)
{
	struct cw_nccl_event api = {
		.type = CW_NCCL_EVENT_COLL_API,
		.coll_api = { .func = "AllReduce", .count = 1, .datatype = "ncclInt8" }
	};
	void *context = NULL, *group;

	cr_assert_eq(ncclProfiler_v4.init(&context, &mask, NULL, 9, 1, 4, 1, NULL), ncclSuccess);
	group = parent_of_v4(context);
	cr_assert_not_null(group);
	cr_assert_eq(ncclProfiler_v4.record_event_state(group, 24, NULL), ncclSuccess);
	cr_assert_eq(ncclProfiler_v4.stop_event(group), ncclSuccess);
	cr_assert_null(parent_of_v4(NULL), "of a communicator it does not watch");
	context = open_comm(7);
	cr_assert_not_null(start_event(context, (struct cw_nccl_event){ .type = EVENT_GROUP }));
	cr_assert_not_null(start_event(context, api));
	cr_assert_eq(of(context)->coll_returned, 1, "and it is recorded");
	for (unsigned i = 0; i < 100; i++)
		cr_assert_not_null(start_group(context, 1), "%u at once", i);
}

static void launch_v4(void *context, const char *func, uint64_t number)
{
	struct cw_nccl_event event = {
		.coll = { .number = number, .func = func, .datatype = "ncclInt8", .count = 8 }
	};
	void *handle;

	event.type_v4 = CW_NCCL_EVENT_COLL;
	ncclProfiler_v4.start_event(context, &handle, &event);
}

/* A replay has the number that the next call will have, and not all ranks hear of it. */
Test(agent_profiler, version_4_counts_on_no_communicator_that_replays)
{
	void *context = NULL;
	struct cw_rec_comm *rc;

	(void)ncclProfiler_v4.init(&context, &mask, NULL, 9, 1, 4, 1, NULL);
	rc = of(context);
	launch_v4(context, "AllReduce", 0);
	launch_v4(context, "AllGather", 0);
	launch_v4(context, "AllReduce", 1);
	launch_v4(context, "AllReduce", 2);
	cr_assert_not(rc->flags & CW_REC_COMM_UNCOUNTED);
	launch_v4(context, "AllReduce", 2);
	cr_assert(rc->flags & CW_REC_COMM_UNCOUNTED);
	ncclProfiler_v4.finalize(context);
	(void)ncclProfiler_v4.init(&context, &mask, NULL, 9, 1, 4, 1, NULL);
	launch_v4(context, "AllReduce", 0);
	cr_assert_not(of(context)->flags & CW_REC_COMM_UNCOUNTED, "another communicator");
}

/* ---- with the wrappers in the same process ---- */

static void *inner_context;

static void plugin_init_inside(void)
{
	V5.init(&inner_context, 5, &mask, NULL, 1, ranks, my_rank, NULL);
}

Test(agent_profiler, leaves_a_wrapped_communicator_to_the_wrapper)
{
	ncclComm_t comm;

	mask = 4711;
	inner_context = handles;
	inside = plugin_init_inside;
	comm = init(1);
	inside = NULL;
	cr_assert_eq(mask & PROXY, PROXY, "for the steps");
	call(inner_context, NULL, "AllReduce", 1);
	cr_assert_eq(entry(comm)->coll_entered, 0, "the wrapper records the calls");
	cr_assert_eq(cw_record.header->comms_used, 1);
	cr_assert_not(entry(comm)->flags & CW_REC_COMM_PROFILER);
	open_comm(6); /* of another NCCL, after the first was made */
	cr_assert_eq(cw_record.header->comms_used, 2);
}

static void event_inside(void)
{
	call(inner_context, NULL, "AllReduce", 1);
}

Test(agent_profiler, records_nothing_inside_a_wrapper)
{
	ncclComm_t comm = init(1);

	inner_context = open_comm(6);
	inside = event_inside;
	all_reduce(comm, 1);
	cr_assert_eq(of(inner_context)->op_index, 0);
	cr_assert_eq(entry(comm)->coll_returned, 1);
}

Test(agent_profiler, keeps_threads_apart_when_there_are_too_many)
{
	void *context = open_comm(1), *open[100];
	struct cw_rec_comm *rc = of(context);

	for (unsigned i = 0; i < 100; i++)
		open[i] = start_group(context, 1);
	call(context, open[99], "AllReduce", 1);
	cr_assert_eq(rc->coll_returned, 1, "recorded at once");
	for (unsigned i = 0; i < 100; i++)
		V5.stop_event(open[i]);
	cr_assert_not_null(start_group(context, 1));
}
