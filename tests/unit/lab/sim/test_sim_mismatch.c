/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effects of a mismatch in the simulated NCCL: docs/design/testing.md#the-simulator, row by
 * row, for every collective. Rank 1 of three makes the different call.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <cuda.h>
#include <nccl.h>
#include <string.h>

#include "lab/sim/sim_ranks.h"

#define NRANKS 3
#define ODD_RANK 1
#define COUNT 12
#define OTHERS 0x5u /* ranks 0 and 2 */
#define ODD (1u << ODD_RANK)
#define ALL (OTHERS | ODD)

enum coll {
	ALL_REDUCE,
	BROADCAST,
	REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
};

enum mismatch {
	NONE,
	SKIPPED,
	EXTRA,
	OTHER_KIND,
	OTHER_ROOT,
	COUNT_ZERO,
	COUNT_SMALLER,
	COUNT_LARGER,
	OTHER_DTYPE,
	OTHER_REDOP,
	SAME_BYTES,
};

struct mismatch_case {
	char name[48];
	enum coll coll;
	enum mismatch mismatch;
	unsigned int finish; /* mask of the ranks that do */
	bool is_wrong;       /* a rank gets wrong data */
};

static struct mismatch_case cases[] = {
	{ "all_reduce none", ALL_REDUCE, NONE, ALL, false },
	{ "all_reduce skipped", ALL_REDUCE, SKIPPED, ODD, false },
	{ "all_reduce extra", ALL_REDUCE, EXTRA, OTHERS, false },
	{ "all_reduce other kind", ALL_REDUCE, OTHER_KIND, 0, false },
	{ "all_reduce count 0", ALL_REDUCE, COUNT_ZERO, ODD, false },
	{ "all_reduce smaller", ALL_REDUCE, COUNT_SMALLER, ODD, true },
	{ "all_reduce larger", ALL_REDUCE, COUNT_LARGER, OTHERS, false },
	{ "all_reduce other dtype", ALL_REDUCE, OTHER_DTYPE, ALL, true },
	{ "all_reduce other redop", ALL_REDUCE, OTHER_REDOP, ALL, true },
	{ "broadcast none", BROADCAST, NONE, ALL, false },
	{ "broadcast skipped", BROADCAST, SKIPPED, ODD, false },
	{ "broadcast extra", BROADCAST, EXTRA, OTHERS, false },
	{ "broadcast other kind", BROADCAST, OTHER_KIND, 0, false },
	{ "broadcast other root", BROADCAST, OTHER_ROOT, 0, false },
	{ "broadcast count 0", BROADCAST, COUNT_ZERO, ODD, false },
	{ "broadcast smaller", BROADCAST, COUNT_SMALLER, ODD, true },
	{ "broadcast same bytes", BROADCAST, SAME_BYTES, ALL, false },
	{ "reduce none", REDUCE, NONE, ALL, false },
	{ "reduce skipped", REDUCE, SKIPPED, ODD, false },
	{ "reduce extra", REDUCE, EXTRA, OTHERS, false },
	{ "reduce other kind", REDUCE, OTHER_KIND, 0, false },
	{ "reduce other root", REDUCE, OTHER_ROOT, 0, false },
	{ "reduce count 0", REDUCE, COUNT_ZERO, ODD, false },
	{ "reduce smaller", REDUCE, COUNT_SMALLER, ODD, false },
	{ "reduce other dtype", REDUCE, OTHER_DTYPE, ALL, true },
	{ "all_gather none", ALL_GATHER, NONE, ALL, false },
	{ "all_gather skipped", ALL_GATHER, SKIPPED, ODD, false },
	{ "all_gather extra", ALL_GATHER, EXTRA, OTHERS, false },
	{ "all_gather other kind", ALL_GATHER, OTHER_KIND, 0, false },
	{ "all_gather count 0", ALL_GATHER, COUNT_ZERO, ODD, false },
	{ "all_gather smaller", ALL_GATHER, COUNT_SMALLER, ODD, true },
	{ "all_gather same bytes", ALL_GATHER, SAME_BYTES, ALL, false },
	{ "reduce_scatter none", REDUCE_SCATTER, NONE, ALL, false },
	{ "reduce_scatter skipped", REDUCE_SCATTER, SKIPPED, ODD, false },
	{ "reduce_scatter extra", REDUCE_SCATTER, EXTRA, OTHERS, false },
	{ "reduce_scatter other kind", REDUCE_SCATTER, OTHER_KIND, 0, false },
	{ "reduce_scatter count 0", REDUCE_SCATTER, COUNT_ZERO, ODD, false },
	{ "reduce_scatter smaller", REDUCE_SCATTER, COUNT_SMALLER, ODD, true },
	{ "reduce_scatter other dtype", REDUCE_SCATTER, OTHER_DTYPE, ALL, true },
	{ "reduce_scatter other redop", REDUCE_SCATTER, OTHER_REDOP, ALL, true },
};

static ncclResult_t call(enum coll coll, float *send, float *recv, size_t count,
			 ncclDataType_t dtype, ncclRedOp_t op, int root,
			 const struct sim_rank_device *d)
{
	switch (coll) {
	case ALL_REDUCE:
		return ncclAllReduce(send, recv, count, dtype, op, d->comm, d->stream);
	case BROADCAST:
		return ncclBroadcast(send, recv, count, dtype, root, d->comm, d->stream);
	case REDUCE:
		return ncclReduce(send, recv, count, dtype, op, root, d->comm, d->stream);
	case ALL_GATHER:
		return ncclAllGather(send, recv, count, dtype, d->comm, d->stream);
	default:
		return ncclReduceScatter(send, recv, count, dtype, op, d->comm, d->stream);
	}
}

/* The call of this rank, which is a different one if it is the odd rank. */
static ncclResult_t odd_call(const struct mismatch_case *c, bool is_odd, float *send, float *recv,
			     const struct sim_rank_device *d)
{
	enum mismatch m = is_odd ? c->mismatch : NONE;
	ncclDataType_t dtype = m == OTHER_DTYPE || m == SAME_BYTES ? ncclBfloat16 : ncclFloat32;
	ncclRedOp_t op = m == OTHER_REDOP ? ncclMax : ncclSum;
	enum coll coll = c->coll;
	size_t count = COUNT;
	ncclResult_t r;

	if (m == SKIPPED)
		return ncclSuccess;
	if (m == OTHER_KIND)
		coll = coll == ALL_REDUCE ? ALL_GATHER : ALL_REDUCE;
	if (m == COUNT_ZERO)
		count = 0;
	if (m == COUNT_SMALLER)
		count = COUNT / 2;
	if (m == COUNT_LARGER || m == SAME_BYTES)
		count = COUNT * 2;
	r = call(coll, send, recv, count, dtype, op, m == OTHER_ROOT ? ODD_RANK : 0, d);
	if (r == ncclSuccess && m == EXTRA)
		r = call(coll, send, recv, count, dtype, op, 0, d);
	return r;
}

/* The right value of element i of the result, or 0 where this rank gets none. */
static float right_result(enum coll coll, int rank, size_t i)
{
	switch (coll) {
	case ALL_REDUCE:
		return (float)(3 + 3 * i); /* (0+i) + (1+i) + (2+i) */
	case BROADCAST:
		return (float)i;
	case REDUCE:
		return rank == 0 ? (float)(3 + 3 * i) : 0;
	case ALL_GATHER:
		return (float)(i / COUNT + i % COUNT);
	default:
		return (float)(3 + 3 * ((size_t)rank * COUNT + i));
	}
}

/* Exit status: 0 right data, 3 wrong data, 1 a call failed. */
static int run_rank(struct sim_rank *self)
{
	const struct mismatch_case *c = self->arg;
	struct sim_rank_device d;
	float host[COUNT * NRANKS * 2];
	size_t n = c->coll == ALL_GATHER ? COUNT * NRANKS : COUNT;
	CUdeviceptr send, recv;

	if (sim_rank_open(self, &d) != 0 || cuMemAlloc(&send, sizeof(host)) != CUDA_SUCCESS ||
	    cuMemAlloc(&recv, sizeof(host)) != CUDA_SUCCESS)
		return 1;
	for (size_t i = 0; i < COUNT * NRANKS * 2; i++)
		host[i] = (float)self->rank + (float)i;
	if (cuMemcpyHtoD(send, host, sizeof(host)) != CUDA_SUCCESS ||
	    cuMemsetD8(recv, 0, sizeof(host)) != CUDA_SUCCESS ||
	    odd_call(c, self->rank == ODD_RANK, (float *)(uintptr_t)send, (float *)(uintptr_t)recv,
		     &d) != ncclSuccess)
		return 1;
	sim_rank_arrived(self);
	if (cuStreamSynchronize(d.stream) != CUDA_SUCCESS ||
	    cuMemcpyDtoH(host, recv, sizeof(host)) != CUDA_SUCCESS)
		return 1;
	/* A rank that called nothing has nothing to be right or wrong. */
	if (self->rank == ODD_RANK && (c->mismatch == SKIPPED || c->mismatch == COUNT_ZERO))
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (host[i] != right_result(c->coll, self->rank, i))
			return 3;
	}
	return 0;
}

ParameterizedTestParameters(sim_mismatch, does_what_the_table_says)
{
	return cr_make_param_array(struct mismatch_case, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct mismatch_case *c, sim_mismatch, does_what_the_table_says)
{
	struct sim_ranks ranks;
	unsigned int finished;
	bool is_wrong = false;

	cr_assert_eq(sim_ranks_start(&ranks, NRANKS, run_rank, c), 0, "%s: start", c->name);
	cr_expect(sim_ranks_wait_arrived(&ranks), "%s: not all ranks arrived", c->name);
	finished = sim_ranks_wait(&ranks, c->finish, SIM_RANKS_DEADLINE_MS);
	cr_expect_eq(finished, c->finish, "%s: only %#x finished", c->name, finished);
	finished = sim_ranks_wait(&ranks, ALL & ~c->finish, SIM_RANKS_HANG_MS);
	cr_expect(finished == 0 || c->finish == ALL, "%s: %#x did not hang", c->name, finished);
	for (int r = 0; r < NRANKS; r++) {
		int status = sim_ranks_exit_status(&ranks, r);

		cr_expect_neq(status, 1, "%s: a call failed on rank %d", c->name, r);
		is_wrong |= status == 3;
	}
	cr_expect_eq(is_wrong, c->is_wrong, "%s: data %s", c->name, is_wrong ? "wrong" : "right");
	sim_ranks_stop(&ranks);
}
