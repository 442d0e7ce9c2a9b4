/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of one process (docs/design/leader.md). A process that drives several devices has
 * several memberships in one communicator, each on a device of its own. We count each membership as
 * a rank. Each of these ranks may stall by itself, and the other ranks of the process then wait for
 * it. A process that only uses different devices for different communicators is one rank.
 *
 * Pure; the values of a record are untrusted.
 */
#pragma once

#include <stdint.h>

#include "digest/rank.h"

/* Limit of the devices of one process. The CUDA driver has the same limit for one machine. */
#define PROCESS_RANKS_MAX 64u

/* One membership of the process in the communicator, and the device that it uses there. */
struct process_place {
	int32_t comm_rank, device;
};

struct process_ranks {
	const struct cw_digest_rank *process; /* borrowed from the caller */
	uint32_t n;                           /* number of ranks, 1 or more */
	/* In order of comm_rank; set only if n > 1. */
	struct process_place places[PROCESS_RANKS_MAX];
	uint32_t nranks; /* size of the communicator of `places` */
	uint32_t first;  /* index of the first rank in the digest; set by digest.c */
};

/*
 * Finds the ranks of a process: its memberships in one communicator. We take the communicator in
 * which the process has the most memberships. Among equals, the largest communicator decides.
 */
void process_ranks_find(const struct cw_digest_rank *process, struct process_ranks *ret);
/*
 * Returns the index of the rank that uses the device of this communicator: 0 to n - 1. If no rank
 * uses the device, the communicator belongs to the first rank.
 */
uint32_t process_ranks_with(const struct process_ranks *of, const struct cw_rec_comm *comm);
/*
 * Returns the job-wide number of the nth rank of the process; -1 = not known. Launchers number
 * processes, not ranks: `label` is the number of this process, and `processes` is how many there
 * are (0 = not known). If the communicator contains every rank of the job, we return the rank's
 * number in the communicator.
 */
int32_t process_ranks_number(const struct process_ranks *of, uint32_t nth, int32_t label,
			     int32_t processes);
/*
 * Returns the number of ranks of the job. We assume that each of its processes has as many ranks as
 * this one.
 */
int32_t process_ranks_count(const struct process_ranks *of, int32_t processes);
