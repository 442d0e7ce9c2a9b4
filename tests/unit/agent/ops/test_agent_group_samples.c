/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent looks at inputs of a group's ops right before the group's launch, and at outputs right
 * behind it: which ops, when, and where. The fake NCCL moves data when a group ends. Each test has
 * a process of its own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/cuda/kernels.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/group.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "record/summary_math.h"
#include "tests/support/agent/cuda/fake_cuda.h"

#define COUNT 16
#define QUEUE 1200

static char contexts[2], streams[2], handles[8];
static float in[COUNT], out[QUEUE][COUNT];

/* ---- NCCL ---- */

static ncclResult_t answer, end_answer;
static unsigned depth, queued;
static float *queue[QUEUE];
static void (*inside)(void); /* called before a group's end returns */

static ncclResult_t enqueue(void *recv, size_t n)
{
	if (answer != ncclSuccess)
		return answer;
	if (recv && queued < QUEUE)
		queue[queued++] = recv;
	return ncclSuccess;
}

static void launch_all(void)
{
	for (unsigned i = 0; i < queued; i++)
		for (unsigned k = 0; k < COUNT; k++)
			queue[i][k] = 7;
	queued = 0;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	return enqueue(r, n);
}

static ncclResult_t fake_broadcast(const void *s, void *r, size_t n, int dt, int root, ncclComm_t c,
				   cudaStream_t st)
{
	return enqueue(r, n);
}

static ncclResult_t fake_send(const void *s, size_t n, int dt, int peer, ncclComm_t c,
			      cudaStream_t st)
{
	return enqueue(NULL, n);
}

static ncclResult_t fake_recv(void *r, size_t n, int dt, int peer, ncclComm_t c, cudaStream_t st)
{
	return enqueue(r, n);
}

static ncclResult_t fake_start(void)
{
	depth++;
	return ncclSuccess;
}

static ncclResult_t fake_end(void)
{
	if (--depth)
		return ncclSuccess;
	if (end_answer == ncclSuccess)
		launch_all();
	queued = 0;
	if (inside)
		inside();
	errno = 4711;
	return end_answer;
}

static ncclResult_t fake_simulate(ncclSimInfo_t *info)
{
	return fake_end();
}

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	*comm = (ncclComm_t)&handles[(unsigned char)id.internal[0] * 4 + rank];
	return ncclSuccess;
}

static ncclResult_t fake_init_config(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
				     ncclConfig_t *config)
{
	return fake_init(comm, nranks, id, rank);
}

static ncclResult_t fake_one(ncclComm_t comm)
{
	return ncclSuccess;
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclBroadcast = fake_broadcast,
	.ncclSend = fake_send,
	.ncclRecv = fake_recv,
	.ncclGroupStart = fake_start,
	.ncclGroupEnd = fake_end,
	.ncclGroupSimulateEnd = fake_simulate,
	.ncclCommInitRank = fake_init,
	.ncclCommInitRankConfig = fake_init_config,
	.ncclCommDestroy = fake_one,
	.ncclCommAbort = fake_one,
};

/* ---- the program ---- */

/* Of the communicator with that number, in the context that is current. */
static ncclComm_t init(const char *policy, unsigned number, int rank)
{
	ncclUniqueId id = { { (char)number } };
	ncclComm_t comm;

	if (!cw_kernel_image_bytes)
		cr_skip_test("built without nvcc and clang: there is no kernel");
	(void)setenv("COLLWATCH_SUMMARY", policy, 1);
	if (!fake_cuda.current)
		fake_cuda.current = fake_cuda.stream_owner = &contexts[0];
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, 4, id, rank);
	return comm;
}

static void start(void)
{
	(void)cw_impl_ncclGroupStart(&fake, NULL);
}

static ncclResult_t end(void)
{
	return cw_impl_ncclGroupEnd(&fake, NULL);
}

static void all_reduce_on(ncclComm_t comm, unsigned to, void *stream)
{
	(void)cw_impl_ncclAllReduce(&fake, NULL, in, out[to], COUNT, CW_DTYPE_FP32, CW_REDOP_SUM,
				    comm, (cudaStream_t)stream);
}

static void all_reduce(ncclComm_t comm, unsigned to)
{
	all_reduce_on(comm, to, NULL);
}

static void send_to(ncclComm_t comm, int peer)
{
	(void)cw_impl_ncclSend(&fake, NULL, in, COUNT, CW_DTYPE_FP32, peer, comm, NULL);
}

static void receive_from(ncclComm_t comm, int peer, unsigned to)
{
	(void)cw_impl_ncclRecv(&fake, NULL, out[to], COUNT, CW_DTYPE_FP32, peer, comm, NULL);
}

/* ---- the launches ---- */

static struct {
	struct cw_summary_args args;
	void *stream, *context;
	unsigned writes; /* of progress before it */
} seen[4 * QUEUE];
static unsigned n_seen;

static void on_launch(void *stream, const void *param)
{
	if (n_seen == 4 * QUEUE)
		return;
	memcpy(&seen[n_seen].args, param, sizeof(seen[n_seen].args));
	seen[n_seen].stream = stream;
	seen[n_seen].context = fake_cuda.current;
	seen[n_seen++].writes = fake_cuda.writes;
}

static void watch(void)
{
	fake_cuda.launching = on_launch;
	n_seen = 0;
}

static unsigned outputs(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_seen; i++)
		n += seen[i].args.is_output;
	return n;
}

static uint64_t not_collected(void)
{
	return cw_record.header->drops[CW_REC_DROP_SUMMARIES];
}

static const struct cw_rec_summary *summary(unsigned number)
{
	return &cw_record.summaries[CW_REC_SUMMARY_FIRSTS + number % CW_REC_SUMMARY_RING];
}

/* ---- when ---- */

Test(agent_group_samples, are_looked_at_behind_the_outermost_end)
{
	ncclComm_t comm = init("full", 0, 1);

	watch();
	start();
	all_reduce(comm, 0);
	start();
	all_reduce(comm, 1);
	(void)end();
	cr_assert_eq(n_seen, 0, "the inner end launches nothing");
	in[0] = 3; /* NCCL takes the content as it is at the end */
	errno = 0;
	cr_assert_eq(end(), ncclSuccess);
	cr_assert_eq(errno, 4711, "as NCCL left it");
	cr_assert_eq(n_seen, 4);
	for (unsigned i = 0; i < 2; i++) {
		const struct cw_rec_summary *input = summary(1 + i), *s = summary(3 + i);

		cr_assert(!input->is_output && input->seq == 1 + i && input->abs_max == 3, "%u", i);
		cr_assert_eq(seen[i].writes, 0, "\"reached\" is written behind it");
		cr_assert(s->is_output && s->elements == COUNT && s->abs_max == 7, "came out");
		cr_assert_eq(s->op_index, s->seq + 1, "behind the making of the communicator");
		cr_assert_eq(seen[2 + i].args.data, (uintptr_t)out[s->seq - 1]);
		cr_assert_eq(seen[2 + i].writes, 2, "\"completed\" is written before");
	}
	cr_assert_neq(summary(3)->seq, summary(4)->seq);
	cr_assert_not(fake_cuda.was_wrong);
	cr_assert_eq(not_collected(), 0);
}

Test(agent_group_samples, of_sends_and_receives_are_what_came)
{
	ncclComm_t comm = init("full", 0, 1);
	unsigned ops = 0;

	watch();
	start();
	for (int peer = 0; peer < 4; peer++) {
		send_to(comm, peer);
		receive_from(comm, peer, (unsigned)peer);
	}
	(void)end();
	cr_assert_eq(n_seen, 8, "a send has an input, a receive an output");
	cr_assert_eq(outputs(), 4);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert(summary(5 + i)->kind == CW_OP_RECV && summary(5 + i)->abs_max == 7);
		cr_assert_eq(summary(5 + i)->op_index % 2, 1, "every other op is a receive");
		ops |= 1u << summary(5 + i)->op_index;
	}
	cr_assert_eq(ops, 1u << 3 | 1u << 5 | 1u << 7 | 1u << 9, "each once");
}

/* ---- not where nothing was launched ---- */

static char sim_info;

static ncclResult_t simulate(void)
{
	return cw_impl_ncclGroupSimulateEnd(&fake, NULL, (ncclSimInfo_t *)&sim_info);
}

Test(agent_group_samples, of_a_group_that_was_not_launched_are_forgotten)
{
	ncclComm_t comm = init("full", 0, 1);

	watch();
	start();
	all_reduce(comm, 0);
	end_answer = ncclInvalidUsage;
	(void)end();
	start();
	all_reduce(comm, 1);
	end_answer = ncclInProgress;
	(void)end();
	start();
	all_reduce(comm, 2);
	end_answer = ncclSuccess;
	(void)simulate();
	cr_assert_eq(outputs(), 0);
	cr_assert_eq(n_seen, 2, "the earlier groups' ends were unknown");
	start();
	all_reduce(comm, 3);
	(void)end();
	cr_assert_eq(n_seen, 4);
	cr_assert_eq(outputs(), 1, "of this group alone");
	cr_assert_eq(seen[n_seen - 1].args.data, (uintptr_t)out[3]);
	cr_assert_eq(not_collected(), 0);
}

Test(agent_group_samples, of_a_simulation_into_nothing_are_looked_at)
{
	ncclComm_t comm = init("full", 0, 1);

	watch();
	start();
	all_reduce(comm, 0);
	(void)cw_impl_ncclGroupSimulateEnd(&fake, NULL, NULL);
	cr_assert_eq(outputs(), 1);
}

/* A caller that cleans up behind a failed call may end the group last of all. */
Test(agent_group_samples, nothing_is_put_on_streams_of_a_group_with_a_refused_call)
{
	ncclComm_t comm = init("full", 0, 1);

	watch();
	start();
	all_reduce(comm, 0);
	answer = ncclInvalidUsage;
	all_reduce(comm, 1);
	end_answer = ncclInvalidUsage;
	(void)end();
	cr_assert_eq(n_seen, 0);
	answer = end_answer = ncclSuccess;
	start();
	all_reduce(comm, 2);
	(void)end();
	cr_assert_eq(n_seen, 2, "the next group is another matter");
	cr_assert_eq(not_collected(), 0);
}

Test(agent_group_samples, are_not_put_into_a_capture)
{
	ncclComm_t comm = init("full", 0, 1);

	watch();
	start();
	fake_cuda.capture_status = 1;
	all_reduce(comm, 0);
	(void)end();
	fake_cuda.capture_status = 0;
	start();
	all_reduce(comm, 1);
	fake_cuda.capture_status = 1; /* begun inside the group */
	(void)end();
	fake_cuda.capture_status = 0;
	start();
	fake_cuda.capture_status = 1;
	all_reduce(comm, 2);
	fake_cuda.capture_status = 0; /* and ended */
	(void)end();
	cr_assert_eq(outputs(), 0);
}

Test(agent_group_samples, of_a_nonblocking_communicator_are_not_looked_at)
{
	ncclConfig_t config = { .size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 0 };
	ncclUniqueId id = { { 1 } };
	ncclComm_t other, comm = init("full", 0, 1);

	(void)cw_impl_ncclCommInitRankConfig(&fake, NULL, &other, 4, id, 1, &config);
	watch();
	start();
	all_reduce(other, 0);
	all_reduce(comm, 1);
	(void)end();
	cr_assert_eq(outputs(), 1);
	cr_assert_eq(seen[n_seen - 1].args.data, (uintptr_t)out[1]);
}

/* ---- communicators that go ---- */

Test(agent_group_samples, of_a_communicator_that_ended_inside_are_counted_only)
{
	ncclComm_t gone = init("full", 0, 1), aborted = init("full", 1, 1);
	ncclUniqueId id = { { 0 } };

	watch();
	start();
	all_reduce(gone, 0);
	all_reduce(aborted, 1);
	(void)cw_impl_ncclCommDestroy(&fake, NULL, gone);
	(void)cw_impl_ncclCommAbort(&fake, NULL, aborted);
	/* It may take the entry of the one before. */
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &gone, 4, id, 1);
	(void)end();
	cr_assert_eq(n_seen, 0);
	cr_assert_eq(not_collected(), 4);
}

static ncclComm_t to_abort;

static void abort_it(void)
{
	CW_STORE(cw_record.comms[cw_comm_find(to_abort)].state, CW_COMM_ABORTED);
}

Test(agent_group_samples, of_a_communicator_that_another_thread_aborts_are_not_looked_at)
{
	to_abort = init("full", 0, 1);
	watch();
	start();
	all_reduce(to_abort, 0);
	inside = abort_it;
	(void)end();
	cr_assert_eq(outputs(), 0);
}

/* ---- several communicators, contexts and streams ---- */

Test(agent_group_samples, are_looked_at_on_the_ops_own_stream_and_context)
{
	ncclComm_t a = init("full", 0, 1), b;

	fake_cuda.current = &contexts[1];
	b = init("full", 1, 1);
	fake_cuda.current = &contexts[0];
	watch();
	start();
	all_reduce_on(a, 0, &streams[0]);
	all_reduce_on(b, 1, &streams[1]);
	all_reduce_on(a, 2, &streams[1]);
	(void)end();
	cr_assert_eq(outputs(), 3);
	for (unsigned i = 0; i < n_seen; i++) {
		uint64_t data = seen[i].args.data;
		unsigned op = seen[i].args.is_output
				      ? (unsigned)(data - (uintptr_t)out) / (unsigned)sizeof(out[0])
				      : i;

		cr_assert_eq(seen[i].context, &contexts[op == 1], "op %u", op);
		cr_assert_eq(seen[i].stream, &streams[op > 0], "op %u", op);
		cr_assert_eq((int)seen[i].args.comm, cw_comm_find(op == 1 ? b : a), "op %u", op);
	}
	cr_assert_eq(fake_cuda.current, &contexts[0], "the program's own is current again");
}

/* ---- more than there is room for ---- */

static void keep_seqs(bool taken[QUEUE], uint32_t comm)
{
	memset(taken, 0, QUEUE * sizeof(*taken));
	for (unsigned i = 0; i < n_seen; i++)
		if (seen[i].args.is_output && seen[i].args.comm == comm)
			taken[seen[i].args.seq] = true;
}

static unsigned count_of(const bool taken[QUEUE])
{
	unsigned n = 0;

	for (unsigned i = 0; i < QUEUE; i++)
		n += taken[i];
	return n;
}

Test(agent_group_samples, of_too_many_ops_the_same_are_looked_at_on_all_members)
{
	static bool first[QUEUE], second[QUEUE], again[QUEUE];
	ncclComm_t a = init("full", 0, 0), b = init("full", 0, 1), other = init("full", 1, 0);
	unsigned both = 0;

	watch();
	start();
	for (unsigned i = 0; i < 500; i++)
		all_reduce(a, i);
	(void)end();
	keep_seqs(first, (uint32_t)cw_comm_find(a));
	cr_assert_eq(count_of(first), CW_GROUP_SAMPLES);
	cr_assert_eq(not_collected(), 2 * (500 - CW_GROUP_SAMPLES), "the rest is counted");
	/* The other member has receives of its own in between. */
	watch();
	start();
	for (unsigned i = 0; i < 500; i++) {
		all_reduce(b, i);
		if (i % 2)
			receive_from(other, 2, 500 + i);
	}
	(void)end();
	cr_assert_eq(outputs(), CW_GROUP_SAMPLES);
	keep_seqs(second, (uint32_t)cw_comm_find(b));
	for (unsigned i = 0; i < QUEUE; i++) {
		cr_assert(first[i] || !second[i], "all_reduce #%u on one member alone", i);
		both += second[i];
	}
	cr_assert_gt(both, CW_GROUP_SAMPLES / 3);
	/* And it is not always the same place in the group. */
	watch();
	start();
	for (unsigned i = 0; i < 500; i++)
		all_reduce(a, i);
	(void)end();
	keep_seqs(again, (uint32_t)cw_comm_find(a));
	cr_assert_eq(count_of(again), CW_GROUP_SAMPLES);
	for (unsigned i = both = 0; i < 500; i++)
		both += first[1 + i] && again[501 + i];
	cr_assert_lt(both, CW_GROUP_SAMPLES / 2);
}

Test(agent_group_samples, of_a_long_all_to_all_are_not_those_of_the_first_peers)
{
	ncclComm_t comm = init("full", 0, 0);
	bool is_late = false;

	watch();
	start();
	for (unsigned i = 0; i < 400; i++)
		receive_from(comm, (int)i, i);
	(void)end();
	cr_assert_eq(outputs(), CW_GROUP_SAMPLES);
	for (unsigned i = 0; i < n_seen; i++)
		is_late |= seen[i].args.op_index > 300;
	cr_assert(is_late);
}

Test(agent_group_samples, that_find_no_place_in_the_ring_are_counted)
{
	ncclComm_t comm = init("full", 0, 0);

	fake_cuda.is_stuck = true;
	watch();
	for (unsigned g = 0; g < 4; g++) {
		start();
		for (unsigned i = 0; i < 40; i++)
			all_reduce(comm, i);
		(void)end();
	}
	cr_assert_leq(fake_cuda.launches, CW_REC_SUMMARY_RING);
	cr_assert_eq(not_collected() + fake_cuda.launches, 2 * 4 * 40);
}

Test(agent_group_samples, of_a_group_outside_of_the_pool_are_counted_only)
{
	ncclComm_t comm = init("full", 0, 0);

	for (unsigned i = 0; i < CW_GROUPS; i++)
		cw_group_begin();
	watch();
	start();
	cr_assert_null(cw_tls.group);
	all_reduce(comm, 0);
	cr_assert_eq(outputs(), 0, "it is not on the stream yet");
	(void)end();
	cr_assert_eq(outputs(), 0);
	cr_assert_eq(not_collected(), 1);
}

/* ---- sampled ---- */

/* Lets the budget earn something. */
static void wait_ms(unsigned ms)
{
	uint64_t until = cw_now_ns() + ms * UINT64_C(1000000);

	while (cw_now_ns() < until)
		;
}

/* The agent's look at a GiB without a reader; NULL = it looked at none of it, or at all. */
static const struct cw_summary_args *part_of_output(ncclComm_t comm)
{
	unsigned before = n_seen;

	start();
	(void)cw_impl_ncclBroadcast(&fake, NULL, NULL, out, 256 << 20, CW_DTYPE_FP32, 3, comm,
				    NULL);
	(void)end();
	return n_seen > before && seen[before].args.stride_log2_plus_1 > 1 ? &seen[before].args
									   : NULL;
}

Test(agent_group_samples, sampled_members_look_at_the_same_places)
{
	ncclComm_t a = init("sampled", 0, 0), b = init("sampled", 0, 1);
	unsigned both = 0;

	fake_cuda.is_stuck = true;
	watch();
	for (unsigned i = 0; i < 200 && both < 3; i++) {
		const struct cw_summary_args *x, *y;
		uint64_t stride;

		wait_ms(8);
		x = part_of_output(a);
		wait_ms(8);
		y = part_of_output(b);
		if (!x || !y)
			continue;
		/* With different shares, the smaller is within the larger. */
		stride = x->stride_words < y->stride_words ? x->stride_words : y->stride_words;
		cr_assert_eq(x->seq, y->seq);
		cr_assert_eq(x->first_word % stride, y->first_word % stride);
		both++;
	}
	cr_assert_gt(both, 0, "none was looked at in part by both");
}

/* ---- off ---- */

Test(agent_group_samples, off_keeps_nothing)
{
	ncclComm_t comm = init("off", 0, 0);

	start();
	all_reduce(comm, 0);
	cr_assert_eq(cw_tls.group->samples.in.n + cw_tls.group->samples.out.n, 0);
	(void)end();
	cr_assert_eq(fake_cuda.launches, 0);
	cr_assert_eq(not_collected(), 0);
}
