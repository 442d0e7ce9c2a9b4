/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with the agent preloaded, for agent-bench: what a cold call takes more than one of
 * NCCL's second name, which no wrapper has. Here code, data and thread-local data of the program,
 * of NCCL and of the agent lie as far apart as in any other.
 *
 * Prints median, p99.9 (ns) and ratio.
 */
#include <stdio.h>
#include <unistd.h>

#include "agent/nccl_abi.h"
#include "common/op.h"
#include "tests/bench/agent_measure.h"

#define COMMS 4
#define CLOCK_US 2500000 /* until the agent has compared its clocks twice */

ncclResult_t ncclAllReduce(const void *s, void *r, size_t n, int dtype, int op, ncclComm_t comm,
			   cudaStream_t stream);
ncclResult_t pncclAllReduce(const void *s, void *r, size_t n, int dtype, int op, ncclComm_t comm,
			    cudaStream_t stream);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);

static ncclComm_t comms[COMMS];

static void all_reduce(unsigned i, bool with_agent)
{
	ncclComm_t comm = comms[i / 8 % COMMS];

	if (with_agent)
		(void)ncclAllReduce(comms, comms, 1000, CW_DTYPE_BF16, CW_REDOP_SUM, comm, NULL);
	else
		(void)pncclAllReduce(comms, comms, 1000, CW_DTYPE_BF16, CW_REDOP_SUM, comm, NULL);
}

int main(void)
{
	struct result r;

	for (unsigned i = 0; i < COMMS; i++) {
		ncclUniqueId id = { { (char)i } };

		(void)ncclCommInitRank(&comms[i], 8, id, 0);
	}
	(void)usleep(CLOCK_US);
	(void)pin(0);
	r = measure_cold(all_reduce);
	printf("%f %f %f\n", r.median, r.p999, r.ratio);
	return 0;
}
