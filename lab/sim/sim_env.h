/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common setup of tests of the simulated NCCL: a communicator of all ranks, a stream, and two
 * buffers. A rank's exit status is the line number of the failed check.
 */
#pragma once

#include <criterion/criterion.h>
#include <cuda.h>
#include <nccl.h>
#include <stdint.h>

#include "lab/sim/sim_ranks.h"

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

static inline int env_open(const struct sim_rank *self, struct env *e)
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

static inline int env_close(struct env *e)
{
	REQUIRE(ncclCommDestroy(e->d.comm) == ncclSuccess);
	REQUIRE(cuMemFree((CUdeviceptr)(uintptr_t)e->send) == CUDA_SUCCESS);
	REQUIRE(cuMemFree((CUdeviceptr)(uintptr_t)e->recv) == CUDA_SUCCESS);
	REQUIRE(cuStreamDestroy(e->d.stream) == CUDA_SUCCESS);
	return 0;
}

/* Runs @fn on @n ranks and asserts that all exit with 0. */
static inline void run_all(int n, sim_rank_fn fn, void *arg)
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
