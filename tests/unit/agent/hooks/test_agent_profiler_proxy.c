/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of network connections, as NCCL reports them to the plugin in each version of its
 * profiler interface. Here we play NCCL: its calls, its launches and its proxy.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/base/state.h"
#include "agent/hooks/profiler_abi.h"
#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "agent/record/nccl_hash.h"
#include "agent/record/record.h"
#include "tests/support/agent/agent_fake_nccl.h"

extern const struct cw_nccl_profiler_v3 ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern const struct cw_nccl_profiler_v4 ncclProfiler_v4;
extern const struct cw_nccl_profiler_v5 ncclProfiler_v5, ncclProfiler_v6, ncclProfiler_v7;

#define PROXY (CW_NCCL_EVENT_PROXY_OP | CW_NCCL_EVENT_PROXY_STEP)
#define SEND true
#define RECEIVE false
#define PEER 3

/* The version that NCCL has chosen. */
static int version = 5;
static int mask;

static const struct cw_nccl_profiler_v3 *v3(void)
{
	return version == 1 ? &ncclProfiler_v1 : version == 2 ? &ncclProfiler_v2 : &ncclProfiler_v3;
}

static const struct cw_nccl_profiler_v5 *v5(void)
{
	return version == 5 ? &ncclProfiler_v5 : version == 6 ? &ncclProfiler_v6 : &ncclProfiler_v7;
}

static void *plugin_init(uint64_t hash, int nranks, int rank)
{
	void *context = (void *)-1;
	ncclResult_t r;

	if (version <= 3)
		r = v3()->init(&context, &mask);
	else if (version == 4)
		r = ncclProfiler_v4.init(&context, &mask, NULL, hash, 2, nranks, rank, NULL);
	else
		r = v5()->init(&context, hash, &mask, NULL, 2, nranks, rank, NULL);
	cr_assert_eq(r, ncclSuccess);
	return context;
}

/* Up to version 4 NCCL sets one byte of the type, and the rest is garbage. */
static void *begin(void *context, uint64_t type, struct cw_nccl_event event)
{
	void *handle = (void *)-1;
	ncclResult_t r;

	errno = 17;
	event.type = version > 4 ? type : ~UINT64_C(0xff) | type;
	if (version <= 3)
		r = v3()->start_event(context, &handle, (void *)&event);
	else if (version == 4)
		r = ncclProfiler_v4.start_event(context, &handle, &event);
	else
		r = v5()->start_event(context, &handle, &event);
	cr_assert_eq(r, ncclSuccess);
	cr_assert_eq(errno, 17);
	return handle;
}

static void stop(void *handle)
{
	errno = 17;
	cr_assert_eq(ncclProfiler_v5.stop_event(handle), ncclSuccess);
	cr_assert_eq(errno, 17);
}

/* Up to version 3 the states of steps come without arguments. */
static void state(void *handle, int number, size_t bytes)
{
	struct cw_nccl_step_args args = { .bytes = bytes };

	errno = 17;
	if (version <= 3)
		cr_assert_eq(v3()->record_event_state(handle, number, NULL), ncclSuccess);
	else
		cr_assert_eq(v5()->record_event_state(handle, number, &args), ncclSuccess);
	cr_assert_eq(errno, 17);
}

/* ---- calls and launches ---- */

static uint64_t hash_of(unsigned id)
{
	ncclUniqueId unique = uid(id);

	return cw_nccl_hash_of(&unique).now;
}

static struct nccl_comm {
	void *context;
	uint64_t hash;
	void *launch; /* handle of the last launch */
	bool is_captured;
} comms[2], *of_call; /* of_call: the communicator that the program calls */

static void on_init(void)
{
	of_call->context = plugin_init(of_call->hash, ranks, my_rank);
}

/* Creates a communicator through the wrapper, which initializes the plugin. */
static ncclComm_t make_comm(unsigned i)
{
	ncclComm_t comm;

	of_call = &comms[i];
	of_call->hash = of_call->hash ? of_call->hash : hash_of(i);
	inside = on_init;
	comm = init(i);
	inside = NULL;
	return comm;
}

static void *group_event(void *context)
{
	void *group = begin(context, CW_NCCL_EVENT_GROUP, (struct cw_nccl_event){ 0 });

	cr_assert_not_null(group, "or NCCL reports nothing in it");
	return group;
}

static void launch_v3(struct nccl_comm *c, void *group)
{
	struct cw_nccl_event_v3 event = { .type = CW_NCCL_EVENT_COLL,
					  .parent = group,
					  .rank = my_rank,
					  .coll = { .comm_hash = c->hash } };

	if (version == 1)
		event.coll.func_v1 = 4;
	else
		event.coll.func = "AllReduce";
	cr_assert_eq(v3()->start_event(c->context, &c->launch, &event), ncclSuccess);
}

/* What NCCL reports of one all_reduce when it launches it, or replays it. */
static void launch(struct nccl_comm *c, void *call)
{
	void *group = group_event(c->context);
	struct cw_nccl_event event = {
		.parent = version == 4 ? group : call,
		.rank = my_rank,
		.coll = { .func = "AllReduce", .count = 4, .datatype = "ncclFloat32" }
	};

	if (version <= 3)
		launch_v3(c, group);
	else
		c->launch = begin(c->context, CW_NCCL_EVENT_COLL, event);
	cr_assert_not_null(c->launch);
	stop(c->launch);
	stop(group);
}

static void *call_event(struct nccl_comm *c)
{
	struct cw_nccl_event event = { .coll_api = { .func = "AllReduce",
						     .count = 4,
						     .datatype = "ncclFloat32",
						     .is_captured = c->is_captured } };
	void *call;

	if (version < 5)
		return NULL;
	call = begin(c->context, CW_NCCL_EVENT_COLL_API, event);
	cr_assert_not_null(call);
	stop(call);
	return call;
}

/* An all_reduce of the program, inside NCCL. */
static void on_call(void)
{
	void *group = NULL, *call;

	if (version >= 5)
		group = begin(of_call->context, CW_NCCL_EVENT_GROUP_API,
			      (struct cw_nccl_event){ .group_api = { .depth = 1 } });
	call = call_event(of_call);
	launch(of_call, call);
	if (group)
		stop(group);
}

static void call_all_reduce(ncclComm_t comm, unsigned i)
{
	of_call = &comms[i];
	inside = on_call;
	all_reduce(comm, 4);
	inside = NULL;
}

/* ---- the proxy ---- */

static void *proxy_op_of(const struct nccl_comm *c, bool is_send, int pid)
{
	struct cw_nccl_event event = { .parent = c->launch,
				       .rank = my_rank,
				       .proxy_op = { .pid = pid,
						     .channel = 1,
						     .peer = PEER,
						     .steps = 16,
						     .chunk_bytes = 1 << 19,
						     .is_send = is_send } };

	return begin(c->context, CW_NCCL_EVENT_PROXY_OP, event);
}

static void *proxy_op(const struct nccl_comm *c, bool is_send)
{
	void *op = proxy_op_of(c, is_send, getpid());

	cr_assert_not_null(op);
	return op;
}

static void *proxy_step(const struct nccl_comm *c, void *op, int number)
{
	struct cw_nccl_event event = { .parent = op,
				       .rank = my_rank,
				       .proxy_step = { .number = number } };

	return begin(c->context, CW_NCCL_EVENT_PROXY_STEP, event);
}

static struct cw_rec_connection *the_slot(void)
{
	struct cw_rec_connection *found = NULL;

	for (unsigned i = 0; i < CW_REC_CONNECTIONS; i++) {
		if (!(cw_record.connections[i].flags & CW_REC_CONNECTION_USED))
			continue;
		cr_assert_null(found);
		found = &cw_record.connections[i];
	}
	return found;
}

static void check_counts(unsigned posted, unsigned ready, unsigned handed, unsigned done)
{
	const struct cw_rec_connection *slot = the_slot();

	cr_assert_not_null(slot);
	cr_assert_eq(slot->counts[CW_REC_STEP_POSTED], posted);
	cr_assert_eq(slot->counts[CW_REC_STEP_READY], ready);
	cr_assert_eq(slot->counts[CW_REC_STEP_HANDED], handed);
	cr_assert_eq(slot->counts[CW_REC_STEP_DONE], done);
}

/* ---- a sender and a receiver, in each version ---- */

ParameterizedTestParameters(agent_profiler_proxy, follows_a_sender)
{
	static int versions[] = { 1, 2, 3, 4, 5, 6, 7 };

	return cr_make_param_array(int, versions, 7);
}

ParameterizedTest(int *wanted, agent_profiler_proxy, follows_a_sender)
{
	ncclComm_t comm;
	const struct cw_rec_connection *slot;
	void *op, *first, *second;
	bool is_detailed = *wanted >= 4;

	version = *wanted;
	comm = make_comm(0);
	cr_assert_eq(mask & PROXY, PROXY);
	cr_assert_not(mask & (1 << 5 | 1 << 6 | 1 << 7), "neither ProxyCtrl, KernelCh nor net");
	call_all_reduce(comm, 0);
	call_all_reduce(comm, 0);
	cr_assert_eq(entry(comm)->coll_returned, 2, "each call once");
	cr_assert_eq(entry(comm)->op_index, 3, "one is the init");
	cr_assert_eq(entry(comm)->nccl_hash, hash_of(0));

	op = proxy_op(&comms[0], SEND);
	slot = the_slot();
	cr_assert_eq(slot->comm_plus_1, cw_comm_find(comm) + 1);
	cr_assert_eq(slot->op, 3, "the second call");
	cr_assert_eq(slot->replay, 0);
	cr_assert_eq(slot->pid, 0);
	cr_assert_eq(slot->rank, my_rank);
	cr_assert_eq(slot->peer, PEER);
	cr_assert_eq(slot->channel, 1);
	cr_assert_eq(slot->steps, 16);
	cr_assert_eq(slot->flags, CW_REC_CONNECTION_USED | CW_REC_CONNECTION_SEND |
					  (is_detailed ? CW_REC_CONNECTION_DETAILED : 0));

	first = proxy_step(&comms[0], op, 0);
	state(first, CW_NCCL_STATE_SEND_GPU_WAIT, 0);
	second = proxy_step(&comms[0], op, 1);
	state(second, CW_NCCL_STATE_SEND_GPU_WAIT, 0);
	check_counts(2, 0, 0, 0);
	for (unsigned i = 0; is_detailed && i < 100; i++)
		state(first, CW_NCCL_STATE_SEND_PEER_WAIT, 0); /* no request is free */
	check_counts(2, is_detailed, 0, 0);
	state(first, CW_NCCL_STATE_SEND_WAIT, 1000);
	check_counts(2, is_detailed, 1, 0);
	stop(first);
	check_counts(2, is_detailed, 1, 1);
	state(second, CW_NCCL_STATE_SEND_WAIT, 24);
	check_counts(2, is_detailed, 2, 1);
	cr_assert_eq(slot->bytes, is_detailed ? 1024 : 0);
	stop(op);
	cr_assert_null(the_slot());
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_CONNECTIONS], 0);
}

ParameterizedTestParameters(agent_profiler_proxy, follows_a_receiver)
{
	static int versions[] = { 1, 4, 7 };

	return cr_make_param_array(int, versions, 3);
}

ParameterizedTest(int *wanted, agent_profiler_proxy, follows_a_receiver)
{
	ncclComm_t comm;
	void *op, *step = NULL;

	version = *wanted;
	comm = make_comm(0);
	call_all_reduce(comm, 0);
	op = proxy_op(&comms[0], RECEIVE);
	for (unsigned i = 0; i < 100; i++)
		step = proxy_step(&comms[0], op, 0); /* again at each turn, without a request */
	check_counts(0, 0, 0, 0);
	state(step, CW_NCCL_STATE_RECV_WAIT, 0);
	check_counts(1, 0, 0, 0);
	state(step, CW_NCCL_STATE_RECV_FLUSH_WAIT, 77);
	check_counts(1, 1, 0, 0);
	state(step, CW_NCCL_STATE_RECV_GPU_WAIT, 77);
	check_counts(1, 1, 1, 0);
	stop(step);
	check_counts(1, 1, 1, 1);
	cr_assert_eq(the_slot()->bytes, *wanted >= 4 ? 77 : 0);
	cr_assert_not(the_slot()->flags & CW_REC_CONNECTION_SEND);
}

/* ---- without wrappers ---- */

ParameterizedTestParameters(agent_profiler_proxy, follows_calls_that_only_the_plugin_sees)
{
	static int versions[] = { 4, 5, 6, 7 };

	return cr_make_param_array(int, versions, 4);
}

ParameterizedTest(int *wanted, agent_profiler_proxy, follows_calls_that_only_the_plugin_sees)
{
	struct cw_rec_comm *rc;

	version = *wanted;
	comms[0].context = plugin_init(99, 4, 1);
	rc = entry(comms[0].context);
	launch(&comms[0], call_event(&comms[0]));
	launch(&comms[0], call_event(&comms[0]));
	cr_assert_eq(rc->coll_returned, 2);
	(void)proxy_op(&comms[0], SEND);
	cr_assert_eq(the_slot()->op, rc->op_index);
	cr_assert_eq(the_slot()->comm_plus_1, cw_comm_find(comms[0].context) + 1);
	cr_assert_eq(ncclProfiler_v5.finalize(comms[0].context), ncclSuccess);
	cr_assert_null(the_slot(), "NCCL does not stop the ops of an aborted communicator");
}

Test(agent_profiler_proxy, wants_nothing_of_an_old_nccl_without_wrappers)
{
	version = 3;
	cr_assert_null(plugin_init(0, 0, 0));
	cr_assert_eq(mask, 0);
}

Test(agent_profiler_proxy, tells_sends_from_collectives)
{
	struct nccl_comm *c = &comms[0];
	struct cw_nccl_event event = {
		.p2p_api = { .func = "Send", .count = 1, .datatype = "ncclInt8" }
	};

	c->context = plugin_init(99, 4, 1);
	event.parent = begin(c->context, CW_NCCL_EVENT_P2P_API, event);
	event.p2p = (typeof(event.p2p)){
		.func = "Send", .count = 1, .datatype = "ncclInt8", .peer = PEER
	};
	c->launch = begin(c->context, CW_NCCL_EVENT_P2P, event);
	(void)proxy_op(c, SEND);
	cr_assert(the_slot()->flags & CW_REC_CONNECTION_P2P);
	cr_assert_eq(the_slot()->op, 1);
}

/* ---- which communicator ---- */

/* Two of the same size; NCCL initializes the plugin in the other order. */
static ncclComm_t other_comm;

static void init_other_first(void)
{
	inside = NULL;
	comms[1].hash = hash_of(1);
	comms[0].hash = hash_of(0);
	of_call = &comms[1];
	inside = on_init;
	other_comm = NULL;
	cw_tls.depth = 0; /* as in another thread */
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &other_comm, ranks, uid(1), my_rank);
	cw_tls.depth = 1;
	inside = NULL;
	of_call = &comms[0];
	on_init();
}

Test(agent_profiler_proxy, finds_the_communicator_by_its_hash)
{
	ncclComm_t comm;

	inside = init_other_first;
	comm = init(0);
	cr_assert_eq(entry(comm)->nccl_hash, hash_of(0));
	cr_assert_eq(entry(other_comm)->nccl_hash, hash_of(1));
	comms[1].launch = NULL;
	(void)proxy_op(&comms[1], SEND);
	cr_assert_eq(the_slot()->comm_plus_1, cw_comm_find(other_comm) + 1);
}

/* A library that loads its own NCCL makes one of the same size meanwhile. */
static void init_of_another_nccl(void)
{
	on_init();
	comms[1].context = plugin_init(4711, ranks, my_rank);
}

Test(agent_profiler_proxy, leaves_a_communicator_of_another_nccl_to_the_plugin)
{
	(void)make_comm(0);
	of_call = &comms[0];
	comms[0].hash = hash_of(2);
	inside = init_of_another_nccl;
	(void)init(2);
	cr_assert(entry(comms[1].context)->flags & CW_REC_COMM_PROFILER);
	cr_assert_eq(entry(comms[1].context)->nccl_hash, 4711);
}

/* NCCL may change its hash. Size and rank then decide, and the first call corrects them. */
static void init_in_group(void)
{
	of_call = &comms[1];
	on_init();
	of_call = &comms[0];
	on_init();
}

ParameterizedTestParameters(agent_profiler_proxy, corrects_a_guess)
{
	static int versions[] = { 4, 5 };

	return cr_make_param_array(int, versions, 2);
}

ParameterizedTest(int *wanted, agent_profiler_proxy, corrects_a_guess)
{
	ncclComm_t a, b;

	version = *wanted;
	comms[0].hash = 1000;
	comms[1].hash = 1001;
	start();
	a = init(0);
	b = init(1);
	inside = init_in_group;
	end();
	inside = NULL;
	cr_assert_eq(entry(a)->nccl_hash, 1001, "the guess is wrong");
	call_all_reduce(a, 0);
	call_all_reduce(b, 1);
	cr_assert_eq(entry(a)->nccl_hash, 1000);
	cr_assert_eq(entry(b)->nccl_hash, 1001);
	(void)proxy_op(&comms[1], SEND);
	cr_assert_eq(the_slot()->comm_plus_1, cw_comm_find(b) + 1);
	cr_assert_eq(entry(b)->op_index, the_slot()->op);
}

Test(agent_profiler_proxy, knows_the_hash_of_a_split)
{
	ncclComm_t parent = make_comm(0), child = NULL;

	of_call = &comms[1];
	of_call->hash = cw_nccl_hash_of_child(hash_of(0), 1, 5);
	inside = on_init;
	(void)cw_impl_ncclCommSplit(&fake, NULL, parent, 5, 0, &child, NULL);
	cr_assert_eq(entry(child)->nccl_hash, of_call->hash);
}

Test(agent_profiler_proxy, frees_the_slots_of_a_communicator_that_ends)
{
	ncclComm_t comm = make_comm(0);

	call_all_reduce(comm, 0);
	(void)proxy_op(&comms[0], SEND);
	cr_assert_eq(ncclProfiler_v5.finalize(comms[0].context), ncclSuccess);
	cr_assert_null(the_slot());
}

/* ---- groups, graphs, other processes ---- */

static void *in_group[2];

static void on_grouped_call(void)
{
	in_group[of_call - comms] = call_event(of_call);
}

static void on_group_end(void)
{
	launch(&comms[1], in_group[1]);
	launch(&comms[0], in_group[0]);
}

ParameterizedTestParameters(agent_profiler_proxy, finds_the_calls_of_a_group)
{
	static int versions[] = { 2, 4, 5 };

	return cr_make_param_array(int, versions, 3);
}

ParameterizedTest(int *wanted, agent_profiler_proxy, finds_the_calls_of_a_group)
{
	ncclComm_t a, b;

	version = *wanted;
	a = make_comm(0);
	b = make_comm(1);
	call_all_reduce(b, 1);
	start();
	inside = on_grouped_call;
	of_call = &comms[0];
	all_reduce(a, 4);
	of_call = &comms[1];
	all_reduce(b, 4);
	inside = on_group_end;
	end();
	inside = NULL;
	(void)proxy_op(&comms[1], SEND);
	cr_assert_eq(the_slot()->comm_plus_1, cw_comm_find(b) + 1);
	cr_assert_eq(the_slot()->op, 3);
	cr_assert_eq(entry(b)->coll_returned, 2);
}

Test(agent_profiler_proxy, numbers_the_replays_of_a_graph)
{
	ncclComm_t comm = make_comm(0);
	void *captured, *op;

	comms[0].is_captured = true;
	of_call = &comms[0];
	inside = on_grouped_call; /* the call alone: a capture launches nothing */
	all_reduce(comm, 4);
	inside = NULL;
	captured = in_group[0];
	for (unsigned i = 1; i <= 3; i++) {
		launch(&comms[0], captured);
		op = proxy_op(&comms[0], SEND);
		cr_assert_eq(the_slot()->op, 2);
		cr_assert_eq(the_slot()->replay, i);
		stop(op);
	}
	cr_assert_eq(entry(comm)->op_index, 2, "no call of the program");
}

/* With PXN the op runs in the proxy of another process, which issued it. */
Test(agent_profiler_proxy, keeps_the_op_of_another_process_apart)
{
	ncclComm_t comm = make_comm(0);
	struct nccl_comm theirs;
	void *own, *op, *step;

	call_all_reduce(comm, 0);
	own = proxy_op(&comms[0], SEND);
	stop(own);
	theirs = comms[0]; /* a forked sibling has the same pointers */
	op = proxy_op_of(&theirs, SEND, getpid() + 1);
	cr_assert_eq(the_slot()->pid, (uint32_t)getpid() + 1);
	cr_assert_eq(the_slot()->rank, my_rank);
	step = proxy_step(&theirs, op, 0);
	state(step, CW_NCCL_STATE_SEND_GPU_WAIT, 0);
	check_counts(1, 0, 0, 0);
	theirs.launch = handles; /* another plugin's */
	theirs.context = (void *)UINTPTR_MAX;
	stop(op);
	(void)proxy_op_of(&theirs, SEND, getpid() + 1);
	cr_assert_eq(the_slot()->comm_plus_1, 0);
	cr_assert_eq(the_slot()->op, 0);
}

Test(agent_profiler_proxy, ignores_handles_that_it_never_gave)
{
	static const uint64_t odd[] = {
		0, 1, UINT64_MAX, UINT64_C(1) << 62, UINT64_C(2) << 62, UINT64_C(3) << 62
	};
	ncclComm_t comm = make_comm(0);
	void *op;

	call_all_reduce(comm, 0);
	op = proxy_op(&comms[0], SEND);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		void *handle = (void *)(uintptr_t)odd[i];

		state(handle, CW_NCCL_STATE_SEND_WAIT, 5);
		stop(handle);
		cr_assert_null(proxy_step(&comms[0], handle, 0));
	}
	cr_assert_null(proxy_step(&comms[0], op, -1));
	check_counts(0, 0, 0, 0);
	stop(op);
	stop(op);
	cr_assert_null(proxy_step(&comms[0], op, 0));
}
