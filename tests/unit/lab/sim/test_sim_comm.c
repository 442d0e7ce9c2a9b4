/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators and groups of the simulated NCCL: the real NCCL's behaviour that other code
 * relies on.
 */
#include <criterion/criterion.h>
#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/sim/sim_env.h"

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

Test(sim_comm, splits_by_colour_and_key)
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

Test(sim_comm, shrinks_away_from_a_rank_that_hangs)
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

Test(sim_comm, lets_go_of_the_stream_on_abort)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, NRANKS, run_abort, NULL), 0);
	cr_expect_eq(sim_ranks_wait(&ranks, ALL & ~1u, SIM_RANKS_DEADLINE_MS), ALL & ~1u);
	for (int r = 1; r < NRANKS; r++)
		cr_expect_eq(sim_ranks_exit_status(&ranks, r), 0);
	sim_ranks_stop(&ranks);
}

/* Rank 0 never comes; the others give up what waits for it, and go on with a split. */
static int run_revoke(struct sim_rank *self)
{
	ncclComm_t rest;
	int count;
	struct env e;

	REQUIRE(env_open(self, &e) == 0);
	if (self->rank != 0)
		REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm,
				      e.d.stream) == ncclSuccess);
	REQUIRE(ncclCommRevoke(e.d.comm, NCCL_REVOKE_DEFAULT + 1) == ncclInvalidArgument);
	REQUIRE(ncclCommRevoke(e.d.comm, NCCL_REVOKE_DEFAULT) == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclInvalidUsage);
	REQUIRE(ncclCommSplit(e.d.comm, 0, self->rank, &rest, NULL) == ncclSuccess);
	REQUIRE(ncclCommCount(rest, &count) == ncclSuccess && count == NRANKS);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, rest, e.d.stream) ==
		ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(ncclCommDestroy(rest) == ncclSuccess);
	return env_close(&e);
}

Test(sim_comm, gives_up_what_waits_when_revoked)
{
	run_all(NRANKS, run_revoke, NULL);
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

Test(sim_comm, hangs_without_error_when_a_peer_dies)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, NRANKS, run_death, NULL), 0);
	cr_expect(sim_ranks_wait_arrived(&ranks));
	cr_expect_eq(sim_ranks_wait(&ranks, 1, SIM_RANKS_DEADLINE_MS), 1);
	cr_expect_eq(sim_ranks_wait(&ranks, ALL & ~1u, SIM_RANKS_HANG_MS), 0);
	sim_ranks_stop(&ranks);
}

/* As a watchdog does: it polls until it sees the error, then aborts. */
static int run_death_with_watchdog(struct sim_rank *self)
{
	ncclResult_t async = ncclSuccess;
	struct env e;

	REQUIRE(setenv("SIM_NCCL_REMOTE_ERRORS", "1", 1) == 0);
	REQUIRE(env_open(self, &e) == 0);
	sim_rank_arrived(self);
	if (e.rank == 0)
		kill(getpid(), SIGKILL);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclSuccess);
	while (async == ncclSuccess)
		REQUIRE(ncclCommGetAsyncError(e.d.comm, &async) == ncclSuccess);
	REQUIRE(async == ncclRemoteError);
	REQUIRE(strstr(ncclGetLastError(e.d.comm), "rank 0 has closed the connection") != NULL);
	REQUIRE(ncclCommAbort(e.d.comm) == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	return 0;
}

Test(sim_comm, tells_who_asks_of_a_peer_that_died)
{
	struct sim_ranks ranks;

	cr_assert_eq(sim_ranks_start(&ranks, 2, run_death_with_watchdog, NULL), 0);
	cr_expect_eq(sim_ranks_wait(&ranks, 3, SIM_RANKS_DEADLINE_MS), 3, "a rank still waits");
	cr_expect_eq(sim_ranks_exit_status(&ranks, 1), 0, "line %d",
		     sim_ranks_exit_status(&ranks, 1));
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

Test(sim_comm, waits_in_init_for_a_missing_rank)
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

Test(sim_comm, aborts_an_init_that_waits_for_a_missing_rank)
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

Test(sim_comm, refuses_two_ranks_with_one_number)
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

Test(sim_comm, starts_non_blocking_communicators_in_the_background)
{
	run_all(NRANKS, run_non_blocking, NULL);
}

static int run_scalable(struct sim_rank *self)
{
	ncclUniqueId ids[2] = { self->id, self->id };
	int32_t in = 1 << self->rank, out = 0;
	ncclComm_t comm;
	CUdeviceptr p;
	CUcontext ctx;
	void *buf;

	ids[1].internal[0] ^= 1; /* another root */
	REQUIRE(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_SUCCESS &&
		cuCtxSetCurrent(ctx) == CUDA_SUCCESS && cuMemAlloc(&p, 4) == CUDA_SUCCESS);
	buf = (void *)(uintptr_t)p;
	REQUIRE(ncclCommInitRankScalable(&comm, self->n, self->rank, 0, ids, NULL) ==
		ncclInvalidArgument);
	REQUIRE(ncclCommInitRankScalable(&comm, self->n, self->rank, 2, ids, NULL) == ncclSuccess);
	REQUIRE(cuMemcpyHtoD(p, &in, 4) == CUDA_SUCCESS);
	REQUIRE(ncclAllReduce(buf, buf, 1, ncclInt32, ncclSum, comm, NULL) == ncclSuccess);
	/* Enqueued work is done once the communicator is finalized; this looks without waiting. */
	REQUIRE(ncclCommFinalize(comm) == ncclSuccess);
	memcpy(&out, buf, sizeof(out));
	REQUIRE(out == ALL);
	REQUIRE(ncclCommDestroy(comm) == ncclSuccess && cuMemFree(p) == CUDA_SUCCESS);
	return 0;
}

Test(sim_comm, starts_from_several_roots_and_finalizes)
{
	run_all(NRANKS, run_scalable, NULL);
}

/* ---- groups ---- */

static int run_groups(struct sim_rank *self)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	int32_t one = 1, out = 0;
	ncclComm_t child = NULL;
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
	/* Without a place for the result it is an end like any other. */
	REQUIRE(ncclGroupStart() == ncclSuccess);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, e.d.comm, e.d.stream) ==
		ncclSuccess);
	if (self->rank == 0)
		REQUIRE(ncclGroupSimulateEnd(NULL) == ncclSuccess);
	else
		REQUIRE(ncclGroupEnd() == ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	/* A place that was not initialised fails the group, and ends it. */
	info.magic = 0;
	REQUIRE(ncclGroupStart() == ncclSuccess);
	REQUIRE(ncclGroupSimulateEnd(&info) == ncclInvalidArgument);
	REQUIRE(ncclGroupEnd() == ncclInvalidUsage);
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
	/* Communicators are made by a simulation, too. */
	info = (ncclSimInfo_t)NCCL_SIM_INFO_INITIALIZER;
	REQUIRE(ncclGroupStart() == ncclSuccess);
	REQUIRE(ncclCommSplit(e.d.comm, 0, self->rank, &child, NULL) == ncclSuccess);
	REQUIRE(ncclGroupSimulateEnd(&info) == ncclSuccess);
	REQUIRE(ncclAllReduce(e.send, e.recv, 1, ncclInt32, ncclSum, child, e.d.stream) ==
		ncclSuccess);
	REQUIRE(cuStreamSynchronize(e.d.stream) == CUDA_SUCCESS);
	REQUIRE(ncclCommDestroy(child) == ncclSuccess);
	return env_close(&e);
}

Test(sim_comm, launches_groups_at_the_outermost_end)
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

Test(sim_comm, runs_several_devices_in_one_process)
{
	run_all(1, run_init_all, NULL);
}

/* ---- calls without peers ---- */

Test(sim_comm, lays_unique_ids_out_as_nccl_does)
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

Test(sim_comm, says_what_it_does_not_simulate)
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
