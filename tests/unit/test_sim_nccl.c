/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated NCCL between real processes: results of every operation, and what of the real
 * one's behaviour others rely on. A rank's exit status is the line of the check that failed.
 */
#include <criterion/criterion.h>
#include <cuda.h>
#include <math.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/sim_ranks.h"

#define NRANKS 4
#define COUNT 13 /* not a power of two, not a multiple of the ranks */
#define BUF_BYTES (COUNT * NRANKS * 8)
#define ALL ((1u << NRANKS) - 1)

#define REQUIRE(x)                                                                                 \
	do {                                                                                       \
		if (!(x))                                                                          \
			return __LINE__ % 256 ? __LINE__ % 256 : 255;                              \
	} while (0)

struct env {
	struct sim_rank_device d;
	int rank, n;
	unsigned char *send, *recv; /* device memory */
};

static int env_open(const struct sim_rank *self, struct env *e)
{
	CUdeviceptr p, q;

	e->rank = self->rank;
	e->n = self->n;
	REQUIRE(sim_rank_open(self, &e->d) == 0);
	REQUIRE(cuMemAlloc(&p, BUF_BYTES) == CUDA_SUCCESS);
	REQUIRE(cuMemAlloc(&q, BUF_BYTES) == CUDA_SUCCESS);
	e->send = (void *)(uintptr_t)p;
	e->recv = (void *)(uintptr_t)q;
	return 0;
}

static int env_close(struct env *e)
{
	REQUIRE(ncclCommDestroy(e->d.comm) == ncclSuccess);
	REQUIRE(cuMemFree((CUdeviceptr)(uintptr_t)e->send) == CUDA_SUCCESS);
	REQUIRE(cuMemFree((CUdeviceptr)(uintptr_t)e->recv) == CUDA_SUCCESS);
	REQUIRE(cuStreamDestroy(e->d.stream) == CUDA_SUCCESS);
	return 0;
}

/* Runs @fn on @n ranks and expects all to end with 0. */
static void run_all(int n, sim_rank_fn fn, void *arg)
{
	struct sim_ranks ranks;
	unsigned int mask = (1u << n) - 1;

	cr_assert_eq(sim_ranks_start(&ranks, n, fn, arg), 0);
	cr_expect_eq(sim_ranks_wait(&ranks, mask, SIM_RANKS_DEADLINE_MS), mask, "some rank hangs");
	for (int r = 0; r < n; r++)
		cr_expect_eq(sim_ranks_exit_status(&ranks, r), 0, "rank %d failed at line %d", r,
			     sim_ranks_exit_status(&ranks, r));
	sim_ranks_stop(&ranks);
}

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

/* ---- sends, receives and what is made of them ---- */

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

/* ---- communicators ---- */

static int run_split(struct sim_rank *self)
{
	int32_t in = 1 << self->rank, out = 0;
	ncclComm_t half, last, none = (ncclComm_t)&in;
	int rank, count, device;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	/* Keys reverse the order. */
	REQUIRE(ncclCommSplit(e.d.comm, self->rank % 2, -self->rank, &half, NULL) == ncclSuccess);
	REQUIRE(ncclCommCount(half, &count) == ncclSuccess && count == 2);
	REQUIRE(ncclCommUserRank(half, &rank) == ncclSuccess && rank == 1 - self->rank / 2);
	REQUIRE(ncclCommCuDevice(half, &device) == ncclSuccess && device == self->rank);
	REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, &in, 4) == CUDA_SUCCESS);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, half, e.d.stream) ==
		ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(&out, (CUdeviceptr)(uintptr_t)e.recv, 4) == CUDA_SUCCESS);
	REQUIRE(out == (self->rank % 2 ? 0xa : 0x5));

	REQUIRE(ncclCommSplit(e.d.comm, self->rank == 3 ? 7 : NCCL_SPLIT_NOCOLOR, 0,
			      self->rank == 3 ? &last : &none, NULL) == ncclSuccess);
	if (self->rank == 3) {
		REQUIRE(ncclCommCount(last, &count) == ncclSuccess && count == 1);
		REQUIRE(ncclCommDestroy(last) == ncclSuccess);
	} else {
		REQUIRE(none == NULL);
	}
	REQUIRE(ncclCommDestroy(half) == ncclSuccess);
	return env_close(&e);
}

Test(sim_nccl, splits_by_colour_and_key)
{
	run_all(NRANKS, run_split, NULL);
}

static int run_shrink(struct sim_rank *self)
{
	int exclude[] = { 1 }, count, rank;
	ncclComm_t rest;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	/* The others are stuck in a collective that rank 1 never enters. */
	if (self->rank == 1) {
		sim_rank_arrived(self);
		pause();
	}
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclSuccess);
	sim_rank_arrived(self);
	REQUIRE(ncclCommShrink(e.d.comm, exclude, 1, &rest, NULL, NCCL_SHRINK_ABORT) ==
		ncclSuccess);
	REQUIRE(ncclCommCount(rest, &count) == ncclSuccess && count == NRANKS - 1);
	REQUIRE(ncclCommUserRank(rest, &rank) == ncclSuccess && rank == (self->rank + 1) / 2);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclInvalidUsage);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, rest, e.d.stream) ==
		ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	return 0;
}

Test(sim_nccl, shrinks_away_from_a_rank_that_hangs)
{
	struct sim_ranks ranks;
	unsigned int survivors = ALL & ~2u;

	cr_assert_eq(sim_ranks_start(&ranks, NRANKS, run_shrink, NULL), 0);
	cr_expect_eq(sim_ranks_wait(&ranks, survivors, SIM_RANKS_DEADLINE_MS), survivors);
	for (int r = 0; r < NRANKS; r++)
		cr_expect(r == 1 || sim_ranks_exit_status(&ranks, r) == 0, "rank %d: line %d", r,
			  sim_ranks_exit_status(&ranks, r));
	sim_ranks_stop(&ranks);
}

static int run_abort(struct sim_rank *self)
{
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	if (self->rank == 0) {
		sim_rank_arrived(self);
		pause();
	}
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclSuccess);
	REQUIRE(cuStreamQuery(e.d.stream) == CUDA_ERROR_NOT_READY);
	sim_rank_arrived(self);
	REQUIRE(ncclCommAbort(e.d.comm) == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	return 0;
}

Test(sim_nccl, lets_go_of_the_stream_on_abort)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, NRANKS, run_abort, NULL), 0);
	cr_expect_eq(sim_ranks_wait(&ranks, ALL & ~1u, SIM_RANKS_DEADLINE_MS), ALL & ~1u);
	for (int r = 1; r < NRANKS; r++)
		cr_expect_eq(sim_ranks_exit_status(&ranks, r), 0);
	sim_ranks_stop(&ranks);
}

static int run_death(struct sim_rank *self)
{
	ncclResult_t async;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	sim_rank_arrived(self);
	if (self->rank == 0)
		kill(getpid(), SIGKILL);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclSuccess);
	REQUIRE(ncclCommGetAsyncError(e.d.comm, &async) == ncclSuccess && async == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	return 0;
}

Test(sim_nccl, hangs_without_error_when_a_peer_dies)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, NRANKS, run_death, NULL), 0);
	cr_expect(sim_ranks_wait_arrived(&ranks));
	cr_expect_eq(sim_ranks_wait(&ranks, 1, SIM_RANKS_DEADLINE_MS), 1);
	cr_expect_eq(sim_ranks_wait(&ranks, ALL & ~1u, SIM_RANKS_HANG_MS), 0);
	sim_ranks_stop(&ranks);
}

static int run_init_with_one_missing(struct sim_rank *self)
{
	struct sim_rank_device d;

	sim_rank_arrived(self);
	if (self->rank == 1)
		pause();
	return sim_rank_open(self, &d);
}

Test(sim_nccl, waits_in_init_for_a_missing_rank)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, 3, run_init_with_one_missing, NULL), 0);
	cr_expect(sim_ranks_wait_arrived(&ranks));
	cr_expect_eq(sim_ranks_wait(&ranks, 5, SIM_RANKS_HANG_MS), 0);
	sim_ranks_stop(&ranks);
}

static void *abort_main(void *arg)
{
	return ncclCommAbort(*(ncclComm_t *)arg) == ncclSuccess ? arg : NULL;
}

/* Ranks 0 and 2 start in the background and give up, one from another thread; 1 never comes. */
static int run_abort_in_init(struct sim_rank *self)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm = NULL;
	pthread_t thread;
	CUcontext ctx;
	void *ok;

	if (self->rank == 1)
		pause();
	REQUIRE(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_SUCCESS &&
		cuCtxSetCurrent(ctx) == CUDA_SUCCESS);
	config.blocking = 0;
	REQUIRE(ncclCommInitRankConfig(&comm, self->n, self->id, self->rank, &config) ==
		ncclInProgress);
	if (self->rank == 0) {
		REQUIRE(ncclCommAbort(comm) == ncclSuccess);
		return 0;
	}
	REQUIRE(pthread_create(&thread, NULL, abort_main, &comm) == 0);
	REQUIRE(pthread_join(thread, &ok) == 0 && ok);
	return 0;
}

Test(sim_nccl, aborts_an_init_that_waits_for_a_missing_rank)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, 3, run_abort_in_init, NULL), 0);
	cr_expect_eq(sim_ranks_wait(&ranks, 5, SIM_RANKS_DEADLINE_MS), 5);
	cr_expect_eq(sim_ranks_exit_status(&ranks, 0), 0);
	cr_expect_eq(sim_ranks_exit_status(&ranks, 2), 0);
	sim_ranks_stop(&ranks);
}

/* Ranks 0 and 1 both say they are rank 0. */
static int run_same_rank(struct sim_rank *self)
{
	struct sim_rank_device d;

	self->rank = 0;
	return sim_rank_open(self, &d) != 0 ? 0 : 1;
}

Test(sim_nccl, refuses_two_ranks_with_one_number)
{
	run_all(2, run_same_rank, NULL);
}

static int run_non_blocking(struct sim_rank *self)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t r, async = ncclInProgress;
	ncclComm_t comm = NULL, child = NULL;
	CUcontext ctx;
	int count;

	config.blocking = 0;
	REQUIRE(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_SUCCESS &&
		cuCtxSetCurrent(ctx) == CUDA_SUCCESS);
	r = ncclCommInitRankConfig(&comm, self->n, self->id, self->rank, &config);
	REQUIRE(comm && (r == ncclInProgress || r == ncclSuccess));
	while (async == ncclInProgress)
		REQUIRE(ncclCommGetAsyncError(comm, &async) == ncclSuccess);
	REQUIRE(async == ncclSuccess && ncclCommCount(comm, &count) == ncclSuccess);
	r = ncclCommSplit(comm, 0, self->rank, &child, NULL);
	REQUIRE(r == ncclInProgress || r == ncclSuccess);
	async = ncclInProgress;
	while (async == ncclInProgress)
		REQUIRE(ncclCommGetAsyncError(comm, &async) == ncclSuccess);
	REQUIRE(async == ncclSuccess && child);
	REQUIRE(ncclCommDestroy(child) == ncclSuccess && ncclCommDestroy(comm) == ncclSuccess);
	return 0;
}

Test(sim_nccl, starts_non_blocking_communicators_in_the_background)
{
	run_all(NRANKS, run_non_blocking, NULL);
}

/* ---- groups ---- */

static int run_groups(struct sim_rank *self)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	int32_t one = 1, out = 0;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	REQUIRE(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)e.send, &one, 4) == CUDA_SUCCESS);
	REQUIRE(ncclGroupEnd() == ncclInvalidUsage);
	/* A simulated group launches nothing, or rank 0, which has none, would disagree. */
	if (self->rank != 0) {
		REQUIRE(ncclGroupStart() == ncclSuccess);
		REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm,
				      e.d.stream) == ncclSuccess);
		REQUIRE(ncclGroupSimulateEnd(&info) == ncclSuccess);
	}
	REQUIRE(ncclGroupStart() == ncclSuccess);
	REQUIRE(ncclGroupStart() == ncclSuccess);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclSuccess);
	REQUIRE(ncclGroupEnd() == ncclSuccess);
	REQUIRE(cuStreamQuery(e.d.stream) == CUDA_SUCCESS); /* the inner end launches nothing */
	REQUIRE(ncclGroupEnd() == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(cuMemcpyDtoH(&out, (CUdeviceptr)(uintptr_t)e.recv, 4) == CUDA_SUCCESS);
	REQUIRE(out == NRANKS);
	/* A failed call inside fails the group. */
	REQUIRE(ncclGroupStart() == ncclSuccess);
	REQUIRE(ncclBroadcast(e.send, e.recv, 1, ncclInt32, NRANKS, e.d.comm, e.d.stream) ==
		ncclInvalidArgument);
	REQUIRE(ncclGroupEnd() == ncclInvalidArgument);
	return env_close(&e);
}

Test(sim_nccl, launches_groups_at_the_outermost_end)
{
	run_all(NRANKS, run_groups, NULL);
}

/* One process, four devices. */
static int run_init_all(struct sim_rank *self)
{
	ncclComm_t comms[NRANKS];
	CUdeviceptr p[NRANKS];
	CUstream streams[NRANKS];
	CUcontext ctx;
	int32_t v;

	REQUIRE(cuInit(0) == CUDA_SUCCESS);
	REQUIRE(ncclCommInitAll(comms, NRANKS, NULL) == ncclSuccess);
	for (int i = 0; i < NRANKS; i++) {
		REQUIRE(cuDevicePrimaryCtxRetain(&ctx, i) == CUDA_SUCCESS &&
			cuCtxSetCurrent(ctx) == CUDA_SUCCESS &&
			cuMemAlloc(&p[i], 4) == CUDA_SUCCESS &&
			cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
		v = 1 << i;
		REQUIRE(cuMemcpyHtoD(p[i], &v, 4) == CUDA_SUCCESS);
	}
	REQUIRE(ncclGroupStart() == ncclSuccess);
	for (int i = 0; i < NRANKS; i++)
		REQUIRE(ncclAllReduce((void *)(uintptr_t)p[i], (void *)(uintptr_t)p[i], 1,
				      ncclInt32, ncclSum, comms[i], streams[i]) == ncclSuccess);
	REQUIRE(ncclGroupEnd() == ncclSuccess);
	for (int i = 0; i < NRANKS; i++) {
		REQUIRE(cuStreamSynchronize(streams[i]) == CUDA_SUCCESS);
		REQUIRE(cuMemcpyDtoH(&v, p[i], 4) == CUDA_SUCCESS && v == 0xf);
		REQUIRE(ncclCommDestroy(comms[i]) == ncclSuccess);
	}
	return 0;
}

Test(sim_nccl, runs_several_devices_in_one_process)
{
	run_all(1, run_init_all, NULL);
}

/* ---- what needs no peers ---- */

Test(sim_nccl, lays_unique_ids_out_as_nccl_does)
{
	ncclUniqueId a, b;
	uint16_t family;

	cr_assert_eq(ncclGetUniqueId(&a), ncclSuccess);
	cr_assert_eq(ncclGetUniqueId(&b), ncclSuccess);
	memcpy(&family, a.internal + 8, sizeof(family));
	cr_expect_eq(family, 2, "AF_INET at offset 8");
	cr_expect_arr_eq(a.internal + 12, "\x7f\0\0\1", 4);
	cr_expect_neq(memcmp(a.internal, b.internal, 8), 0, "random");
	for (size_t i = 24; i < sizeof(a); i++)
		cr_expect_eq(a.internal[i], 0);
}

Test(sim_nccl, says_what_it_does_not_simulate)
{
	ncclWindow_t win;
	int version;

	cr_expect_eq(ncclGetVersion(&version), ncclSuccess);
	cr_expect_eq(version, 22809);
	cr_expect_eq(ncclCommWindowRegister(NULL, NULL, 0, &win, 0), ncclInvalidUsage);
	cr_expect(strstr(ncclGetLastError(NULL), "not simulated"));
	cr_expect_str_eq(ncclGetErrorString(ncclInvalidUsage), "invalid usage");
	cr_expect_eq(ncclCommCount(NULL, &version), ncclInvalidArgument);
}
