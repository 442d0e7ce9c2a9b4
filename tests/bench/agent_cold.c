/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with the agent preloaded, for agent-bench: the extra time of a cold call over a call by
 * NCCL's second name, which has no wrapper. Here code, data and thread-local data of the program,
 * of NCCL and of the agent lie as far apart as in any other.
 *
 *	LD_PRELOAD=…/libcollwatch.so agent-cold [--smoke]
 *
 * Prints median, p99.9 (ns), ratio to a call without the agent, the time of a load of a cold page
 * in the same rounds (ns), and the number of measured calls; exit status 1 unless they are all in
 * the record.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/nccl_abi.h"
#include "model/op.h"
#include "record/record_layout.h"
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

/* The agent's own descriptor: the program knows nothing of it. -1 when there is none. */
static int find_record(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[64];
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[n < 0 ? 0 : n] = '\0';
		if (strstr(target, "memfd:" CW_RECORD_NAME))
			fd = atoi(entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return fd;
}

/* Ops ever recorded. */
static uint64_t recorded(int fd)
{
	struct cw_rec_header header;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return 0;
	return header.ring_ticket;
}

int main(int argc, char **argv)
{
	bool is_smoke = argc == 2 && strcmp(argv[1], "--smoke") == 0;
	struct result r;
	uint64_t before;
	int fd;

	for (unsigned i = 0; i < COMMS; i++) {
		ncclUniqueId id = { { (char)i } };

		(void)ncclCommInitRank(&comms[i], 8, id, 0);
	}
	fd = find_record();
	before = recorded(fd);
	if (is_smoke)
		measure_seldom();
	else
		(void)usleep(CLOCK_US);
	(void)pin(0);
	r = measure_cold(all_reduce);
	printf("%f %f %f %f %" PRIu64 "\n", r.median, r.p999, r.ratio, r.load, r.ops);
	if (!r.ops || recorded(fd) - before != r.ops) {
		fprintf(stderr, "agent-cold: %" PRIu64 " of %" PRIu64 " calls are in the record\n",
			recorded(fd) - before, r.ops);
		return 1;
	}
	return 0;
}
