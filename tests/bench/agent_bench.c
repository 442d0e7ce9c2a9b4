/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording adds to one NCCL call on the host: batches of calls through a wrapper and batches
 * of the bare function take turns in one process, so that both see the same machine. Prints the
 * median over the batches and the 99.9th percentile of single calls, in nanoseconds.
 *
 *	agent_bench [MAX_MEDIAN_NS]	exits 1 when the median is above
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/wrap.h"
#include "common/op.h"

#define BATCHES 401
#define CALLS 1000
#define SINGLES 200000
#define COMMS 4

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	static char handles[COMMS][4096];
	static unsigned n;

	*comm = (ncclComm_t)handles[n++ % COMMS];
	return ncclSuccess;
}

static __attribute__((noinline)) ncclResult_t
fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c, cudaStream_t st)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclCommInitRank = fake_init,
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static ncclComm_t comms[COMMS];

static double batch(int with_agent)
{
	uint64_t start = now_ns();

	for (int i = 0; i < CALLS; i++) {
		ncclComm_t comm = comms[i / 8 % COMMS];

		if (with_agent)
			(void)cw_impl_ncclAllReduce(&fake, (void *)batch, &comms, &comms, 1000,
						    CW_DTYPE_BF16, CW_REDOP_SUM, comm, NULL);
		else
			(void)fake_all_reduce(&comms, &comms, 1000, CW_DTYPE_BF16, CW_REDOP_SUM,
					      comm, NULL);
	}
	return (double)(now_ns() - start) / CALLS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

int main(int argc, char **argv)
{
	static double with[BATCHES], without[BATCHES], single[SINGLES], clock_cost[SINGLES];
	double limit = argc > 1 ? atof(argv[1]) : 1e9, added;

	for (unsigned i = 0; i < COMMS; i++) {
		ncclUniqueId id = { { (char)i } };

		(void)cw_impl_ncclCommInitRank(&fake, NULL, &comms[i], 8, id, 0);
	}
	if (!cw_agent_is_armed()) {
		fprintf(stderr, "no record\n");
		return 77;
	}
	for (int i = 0; i < BATCHES; i++) {
		without[i] = batch(0);
		with[i] = batch(1);
	}
	for (int i = 0; i < SINGLES; i++) {
		uint64_t a = now_ns(), b;

		b = now_ns();
		(void)cw_impl_ncclAllReduce(&fake, (void *)batch, NULL, NULL, 1000, CW_DTYPE_BF16,
					    CW_REDOP_SUM, comms[i % COMMS], NULL);
		single[i] = (double)(now_ns() - b);
		clock_cost[i] = (double)(b - a);
	}
	added = median(with, BATCHES) - median(without, BATCHES);
	printf("added per call: median %.1f ns\n", added);
	qsort(single, SINGLES, sizeof(*single), compare);
	printf("single calls: median %.0f ns, p99.9 %.0f ns (reading the clock: %.0f ns)\n",
	       single[SINGLES / 2], single[SINGLES - SINGLES / 1000], median(clock_cost, SINGLES));
	return added <= limit ? 0 : 1;
}
