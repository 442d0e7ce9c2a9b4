/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NCCL between real processes: the results of every operation. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <math.h>
#include <nccl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "lab/sim/sim_env.h"

/* ---- data types: the test's own conversions ---- */

static size_t size_of(ncclDataType_t t)
{
	static const size_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return sizes[t];
}

/* The test's values are exact in 16 bits and not denormal. */
static uint16_t half_of(double v)
{
	int exponent;
	double m = frexp(fabs(v), &exponent); /* |v| = m * 2^exponent, m in [0.5, 1) */

	if (v == 0)
		return 0;
	return (uint16_t)((v < 0 ? 0x8000 : 0) + (exponent + 14) * 1024 + (int)(m * 2048) - 1024);
}

static void put(unsigned char *buf, size_t i, ncclDataType_t t, double v)
{
	float f = (float)v;
	uint16_t h = half_of(v);
	int64_t n = (int64_t)v;
	uint32_t bits;

	buf += i * size_of(t);
	if (t == ncclFloat32)
		memcpy(buf, &f, 4);
	else if (t == ncclFloat64)
		memcpy(buf, &v, 8);
	else if (t == ncclFloat16)
		memcpy(buf, &h, 2);
	else if (t == ncclBfloat16) {
		memcpy(&bits, &f, 4);
		bits >>= 16; /* the test's values are exact */
		memcpy(buf, &bits, 2);
	} else
		memcpy(buf, &n, size_of(t)); /* little endian */
}

static double value_of(int rank, size_t i)
{
	return (double)((size_t)rank + i) + 1 - 4 * (double)(i % 3 == 0);
}

static double unsigned_value_of(int rank, size_t i)
{
	return (double)(((size_t)rank + i) % 3 + 1);
}

static double input(ncclDataType_t t, int rank, size_t i)
{
	/* Products stay small enough for eight bits and the 16-bit floats. */
	if (t == ncclFloat32 || t == ncclFloat64 || t == ncclInt64)
		return value_of(rank, i);
	return unsigned_value_of(rank, i);
}

static bool is_float(ncclDataType_t t)
{
	return t == ncclFloat16 || t == ncclBfloat16 || t == ncclFloat32 || t == ncclFloat64;
}

static double reduced(ncclDataType_t t, ncclRedOp_t op, int n, size_t i)
{
	double v = input(t, 0, i);

	for (int r = 1; r < n; r++) {
		double x = input(t, r, i);

		v = op == ncclProd  ? v * x
		    : op == ncclMax ? fmax(v, x)
		    : op == ncclMin ? fmin(v, x)
				    : v + x;
	}
	if (op == ncclAvg)
		v = is_float(t) ? v / n : trunc(v / n);
	return v;
}

static int upload(struct env *e, ncclDataType_t t, size_t count)
{
	unsigned char host[BUF_BYTES] = { 0 };

	for (size_t i = 0; i < count; i++)
		put(host, i, t, input(t, e->rank, i));
	REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e->send, host, BUF_BYTES) == CUDA_SUCCESS);
	REQUIRE(cuMemsetD8((CUdeviceptr)(uintptr_t)e->recv, 0xee, BUF_BYTES) == CUDA_SUCCESS);
	return 0;
}

/* Waits and compares what arrived, byte by byte, the rest of the buffer included. */
static int compare(struct env *e, const unsigned char *want)
{
	unsigned char got[BUF_BYTES];

	REQUIRE(cuStreamSynchronize(e->d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(got, (CUdeviceptr)(uintptr_t)e->recv, BUF_BYTES) == CUDA_SUCCESS);
	REQUIRE(memcmp(got, want, BUF_BYTES) == 0);
	return 0;
}

static int check_reductions(struct env *e, ncclDataType_t t, ncclRedOp_t op)
{
	struct sim_rank_device *d = &e->d;
	unsigned char want[BUF_BYTES];

	memset(want, 0xee, sizeof(want));
	for (size_t i = 0; i < COUNT; i++)
		put(want, i, t, reduced(t, op, e->n, i));
	REQUIRE(upload(e, t, COUNT) == 0);
	REQUIRE(ncclAllReduce(e->send, e->recv, COUNT, t, op, d->comm, d->stream) == ncclSuccess);
	REQUIRE(compare(e, want) == 0);

	if (e->rank != 2)
		memset(want, 0xee, sizeof(want));
	REQUIRE(upload(e, t, COUNT) == 0);
	REQUIRE(ncclReduce(e->send, e->recv, COUNT, t, op, 2, d->comm, d->stream) == ncclSuccess);
	REQUIRE(compare(e, want) == 0);

	memset(want, 0xee, sizeof(want));
	for (size_t i = 0; i < COUNT; i++)
		put(want, i, t, reduced(t, op, e->n, (size_t)e->rank * COUNT + i));
	REQUIRE(upload(e, t, COUNT * (size_t)e->n) == 0);
	REQUIRE(ncclReduceScatter(e->send, e->recv, COUNT, t, op, d->comm, d->stream) ==
		ncclSuccess);
	return compare(e, want);
}

static int check_moves(struct env *e, ncclDataType_t t)
{
	struct sim_rank_device *d = &e->d;
	unsigned char want[BUF_BYTES];

	memset(want, 0xee, sizeof(want));
	for (size_t i = 0; i < COUNT; i++)
		put(want, i, t, input(t, 1, i));
	REQUIRE(upload(e, t, COUNT) == 0);
	REQUIRE(ncclBroadcast(e->send, e->recv, COUNT, t, 1, d->comm, d->stream) == ncclSuccess);
	REQUIRE(compare(e, want) == 0);
	for (size_t i = 0; i < COUNT * (size_t)e->n; i++)
		put(want, i, t, input(t, (int)(i / COUNT), i % COUNT));
	REQUIRE(upload(e, t, COUNT) == 0);
	REQUIRE(ncclAllGather(e->send, e->recv, COUNT, t, d->comm, d->stream) == ncclSuccess);
	return compare(e, want);
}

static int run_collectives(struct sim_rank *self)
{
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	for (int t = ncclInt8; t <= ncclBfloat16; t++) {
		for (int op = ncclSum; op <= ncclAvg; op++)
			REQUIRE(check_reductions(&e, (ncclDataType_t)t, (ncclRedOp_t)op) == 0);
		REQUIRE(check_moves(&e, (ncclDataType_t)t) == 0);
	}
	REQUIRE(ncclAllReduce(e.send, e.recv, COUNT, ncclFloat8e4m3, ncclSum, e.d.comm,
			      e.d.stream) == ncclInvalidUsage);
	return env_close(&e);
}

Test(sim_nccl, reduces_and_moves_every_type_with_every_operator)
{
	run_all(NRANKS, run_collectives, NULL);
}

static int run_alone(struct sim_rank *self)
{
	unsigned char want[BUF_BYTES];
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	memset(want, 0xee, sizeof(want));
	for (size_t i = 0; i < COUNT; i++)
		put(want, i, ncclFloat32, input(ncclFloat32, 0, i));
	REQUIRE(upload(&e, ncclFloat32, COUNT) == 0);
	REQUIRE(ncclAllReduce(e.send, e.recv, COUNT, ncclFloat32, ncclSum, e.d.comm, e.d.stream) ==
		ncclSuccess);
	REQUIRE(compare(&e, want) == 0);
	return env_close(&e);
}

Test(sim_nccl, copies_when_there_is_only_one_rank)
{
	run_all(1, run_alone, NULL);
}

/* ---- operators made by the user ---- */

static int run_premulsum(struct sim_rank *self)
{
	float scalar = (float)(self->rank + 1), in[COUNT], out[COUNT];
	ncclRedOp_t op;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	for (size_t i = 0; i < COUNT; i++)
		in[i] = (float)i;
	REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, in, sizeof(in)) == CUDA_SUCCESS);
	REQUIRE(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate,
					 e.d.comm) == ncclSuccess);
	REQUIRE(op >= ncclNumOps);
	REQUIRE(ncclAllReduce(e.send, e.recv, COUNT, ncclFloat32, op, e.d.comm, e.d.stream) ==
		ncclSuccess);
	REQUIRE(ncclRedOpDestroy(op, e.d.comm) == ncclSuccess);
	REQUIRE(ncclAllReduce(e.send, e.recv, COUNT, ncclFloat32, op, e.d.comm, e.d.stream) ==
		ncclInvalidArgument);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(out, (CUdeviceptr)(uintptr_t)e.recv, sizeof(out)) == CUDA_SUCCESS);
	for (size_t i = 0; i < COUNT; i++)
		REQUIRE(out[i] == (float)(i * 10)); /* 1 + 2 + 3 + 4 */
	return env_close(&e);
}

Test(sim_nccl, multiplies_by_each_ranks_own_scalar)
{
	run_all(NRANKS, run_premulsum, NULL);
}

/* ---- sends, receives and operations made of them ---- */

static int run_ring(struct sim_rank *self)
{
	int64_t in[2] = { self->rank, 100 + self->rank }, out[2] = { -1, -1 };
	int next = (self->rank + 1) % self->n, prev = (self->rank + self->n - 1) % self->n;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, in, sizeof(in)) == CUDA_SUCCESS);
	REQUIRE(ncclGroupStart() == ncclSuccess);
	/* Two in a row between the same ranks keep their order. */
	REQUIRE(ncclSend(e.send, 1, ncclInt64, next, e.d.comm, e.d.stream) == ncclSuccess);
	REQUIRE(ncclSend(e.send + 8, 1, ncclInt64, next, e.d.comm, e.d.stream) == ncclSuccess);
	REQUIRE(ncclRecv(e.recv, 1, ncclInt64, prev, e.d.comm, e.d.stream) == ncclSuccess);
	REQUIRE(ncclRecv(e.recv + 8, 1, ncclInt64, prev, e.d.comm, e.d.stream) == ncclSuccess);
	REQUIRE(cuStreamQuery(e.d.stream) == CUDA_SUCCESS); /* nothing before the end */
	REQUIRE(ncclGroupEnd() == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(out, (CUdeviceptr)(uintptr_t)e.recv, sizeof(out)) == CUDA_SUCCESS);
	REQUIRE(out[0] == prev && out[1] == 100 + prev);
	return env_close(&e);
}

Test(sim_nccl, passes_messages_round_a_ring)
{
	run_all(NRANKS, run_ring, NULL);
}

static int run_exchanges(struct sim_rank *self)
{
	int32_t in[NRANKS], out[NRANKS];
	CUdeviceptr send, recv;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	send = (CUdeviceptr)(uintptr_t)e.send;
	recv = (CUdeviceptr)(uintptr_t)e.recv;
	for (int i = 0; i < NRANKS; i++)
		in[i] = self->rank * 10 + i;
	REQUIRE(cuMemcpyHtoD(send, in, sizeof(in)) == CUDA_SUCCESS);
	REQUIRE(ncclAlltoAll(e.send, e.recv, 1, ncclInt32, e.d.comm, e.d.stream) == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(out, recv, sizeof(out)) == CUDA_SUCCESS);
	for (int i = 0; i < NRANKS; i++)
		REQUIRE(out[i] == i * 10 + self->rank);

	REQUIRE(ncclGather(e.send, e.recv, 1, ncclInt32, 3, e.d.comm, e.d.stream) == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(out, recv, sizeof(out)) == CUDA_SUCCESS);
	for (int i = 0; self->rank == 3 && i < NRANKS; i++)
		REQUIRE(out[i] == i * 10);

	REQUIRE(ncclScatter(e.send, e.recv, 1, ncclInt32, 1, e.d.comm, e.d.stream) == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(out, recv, sizeof(out)) == CUDA_SUCCESS);
	REQUIRE(out[0] == 10 + self->rank);
	return env_close(&e);
}

Test(sim_nccl, exchanges_by_sends_and_receives)
{
	run_all(NRANKS, run_exchanges, NULL);
}

/* Rank 0 sends 2, rank 1 receives 1 (done), then wants 4 where 2 were sent (never done). */
static int run_unequal(struct sim_rank *self)
{
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	for (size_t n = 1; n <= 4; n += 3) {
		if (self->rank == 0)
			REQUIRE(ncclSend(e.send, 2, ncclInt32, 1, e.d.comm, e.d.stream) ==
				ncclSuccess);
		else
			REQUIRE(ncclRecv(e.recv, n, ncclInt32, 0, e.d.comm, e.d.stream) ==
				ncclSuccess);
		if (n == 1)
			REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	}
	sim_rank_arrived(self);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	return 0;
}

Test(sim_nccl, hangs_a_receive_larger_than_its_send)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, 2, run_unequal, NULL), 0);
	cr_expect(sim_ranks_wait_arrived(&ranks));
	cr_expect_eq(sim_ranks_wait(&ranks, 1, SIM_RANKS_DEADLINE_MS), 1);
	cr_expect_eq(sim_ranks_wait(&ranks, 2, SIM_RANKS_HANG_MS), 0);
	cr_expect_eq(sim_ranks_exit_status(&ranks, 0), 0);
	sim_ranks_stop(&ranks);
}

/* Room for four messages of 16 bytes; rank 1 receives the first of all. */
static int run_ahead(struct sim_rank *self)
{
	int32_t v[4] = { 0 };
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	if (self->rank == 1) {
		REQUIRE(ncclRecv(e.recv, 4, ncclInt32, 0, e.d.comm, e.d.stream) == ncclSuccess);
		REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
		REQUIRE(cuMemcpyDtoH(v, (CUdeviceptr)(uintptr_t)e.recv, sizeof(v)) == CUDA_SUCCESS);
		REQUIRE(v[0] == 1);
	}
	for (int i = 1; self->rank == 0 && i <= *(int *)self->arg; i++) {
		v[0] = i;
		REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, v, sizeof(v)) == CUDA_SUCCESS);
		REQUIRE(ncclSend(e.send, 4, ncclInt32, 1, e.d.comm, e.d.stream) == ncclSuccess);
		if (i == *(int *)self->arg)
			sim_rank_arrived(self);
		REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	}
	if (self->rank == 1) {
		sim_rank_arrived(self);
		pause();
	}
	return 0;
}

/* Which of the two ends. */
static unsigned int who_gets_ahead(int sends, int deadline_ms)
{
	struct sim_ranks ranks;
	unsigned int mask;

	cr_assert_eq(setenv("SIM_NCCL_BUFFERED", "64", 1), 0);
	cr_assert_eq(sim_ranks_start(&ranks, 2, run_ahead, &sends), 0);
	cr_expect(sim_ranks_wait_arrived(&ranks));
	mask = sim_ranks_wait(&ranks, 1, deadline_ms);
	if (mask)
		cr_expect_eq(sim_ranks_exit_status(&ranks, 0), 0);
	sim_ranks_stop(&ranks);
	return mask;
}

Test(sim_nccl, lets_a_sender_get_ahead_by_what_is_buffered)
{
	cr_expect_eq(who_gets_ahead(5, SIM_RANKS_DEADLINE_MS), 1);
	cr_expect_eq(who_gets_ahead(6, SIM_RANKS_HANG_MS), 0);
}

/* Rank 1 never comes to its receive: rank 0's host blocks in the call, not its stream. */
static int run_first_use(struct sim_rank *self)
{
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	sim_rank_arrived(self);
	if (self->rank == 1)
		pause();
	return ncclSend(e.send, 1, ncclInt32, 1, e.d.comm, e.d.stream) == ncclSuccess ? 0 : 1;
}

Test(sim_nccl, connects_to_a_new_peer_on_the_host)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, 2, run_first_use, NULL), 0);
	cr_expect(sim_ranks_wait_arrived(&ranks));
	cr_expect_eq(sim_ranks_wait(&ranks, 1, SIM_RANKS_HANG_MS), 0);
	sim_ranks_stop(&ranks);
}

/* The same handles mean the default streams here as in the driver. */
static int run_default_streams(struct sim_rank *self)
{
	const CUstream streams[] = { NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD };
	struct env e;
	int32_t v;

	REQUIRE(env_open(self, &e) == 0);
	for (int i = 0; i < 3; i++) {
		v = 1;
		REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, &v, 4) == CUDA_SUCCESS);
		REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm,
				      streams[i]) == ncclSuccess);
		/* A synchronous copy comes after what is on the default streams. */
		REQUIRE(cuMemcpyDtoH(&v, (CUdeviceptr)(uintptr_t)e.recv, 4) == CUDA_SUCCESS);
		REQUIRE(v == self->n);
	}
	return env_close(&e);
}

Test(sim_nccl, works_on_the_default_streams)
{
	run_all(2, run_default_streams, NULL);
}

/* Two streams, one communicator: the order of the calls counts. */
static int run_two_streams(struct sim_rank *self)
{
	int32_t v = 1 + self->rank;
	CUstream other;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	REQUIRE(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, &v, 4) == CUDA_SUCCESS);
	for (int i = 0; i < 100; i++) {
		REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclMax, e.d.comm,
				      e.d.stream) == ncclSuccess);
		REQUIRE(ncclAllGather(e.send, e.recv + 64, 1, ncclInt32, e.d.comm, other) ==
			ncclSuccess);
	}
	REQUIRE(cuStreamSynchronize(other) == CUDA_SUCCESS);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(&v, (CUdeviceptr)(uintptr_t)e.recv, 4) == CUDA_SUCCESS);
	REQUIRE(v == self->n);
	return env_close(&e);
}

Test(sim_nccl, keeps_one_order_over_several_streams)
{
	run_all(NRANKS, run_two_streams, NULL);
}

/* Hosts are ahead: calls are made while a replay before them in the stream has yet to run. */
static int run_replays(struct sim_rank *self)
{
	int32_t v = 1 + self->rank;
	CUgraphExec exec;
	CUgraph graph;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, &v, 4) == CUDA_SUCCESS);
	REQUIRE(cuStreamBeginCapture(e.d.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
		CUDA_SUCCESS);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclMax, e.d.comm, e.d.stream) ==
		ncclSuccess);
	REQUIRE(cuStreamEndCapture(e.d.stream, &graph) == CUDA_SUCCESS);
	REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
	for (int i = 0; i < 100; i++) {
		REQUIRE(cuGraphLaunch(exec, e.d.stream) == CUDA_SUCCESS);
		REQUIRE(ncclAllGather(e.send, e.recv + 64, 1, ncclInt32, e.d.comm, e.d.stream) ==
			ncclSuccess);
	}
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(&v, (CUdeviceptr)(uintptr_t)e.recv, 4) == CUDA_SUCCESS);
	REQUIRE(v == self->n);
	return env_close(&e);
}

Test(sim_nccl, keeps_replays_and_calls_in_the_order_of_their_stream)
{
	run_all(NRANKS, run_replays, NULL);
}
