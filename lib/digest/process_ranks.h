/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of one process (docs/design/leader.md). A process that drives several devices is a
 * member of one communicator several times, each time on a device of its own. It counts as that
 * many ranks. Each of these ranks may stall by itself, and the other ranks of the process wait for
 * it like any rank. If a process only uses different devices for different communicators, it is one
 * rank.
 *
 * Pure; the values of a record are untrusted.
 */
#pragma once

#include <stdint.h>

#include "digest/rank.h"

/* Most devices of one process: the CUDA driver's limit for one machine. */
#define PROCESS_RANKS_MAX 64u

/* One membership of the process in the communicator, and the device that it uses there. */
struct process_place {
	int32_t comm_rank, device;
};

struct process_ranks {
	const struct cw_digest_rank *process;           /* borrowed */
	uint32_t n;                                     /* 1 or more */
	struct process_place places[PROCESS_RANKS_MAX]; /* in order of comm rank, if n > 1 */
	uint32_t nranks;                                /* size of the communicator of `places` */
	uint32_t first; /* index into the digest's ranks; set by digest.c */
};

/*
 * Finds the ranks of a process. We take the communicator in which the process has the most
 * memberships. Among equals, the largest communicator decides.
 */
void process_ranks_find(const struct cw_digest_rank *process, struct process_ranks *ret);
/*
 * Returns the index of the rank that uses this communicator's device: 0 to n - 1. If no rank uses
 * the device, the communicator belongs to the first rank.
 */
uint32_t process_ranks_with(const struct process_ranks *of, const struct cw_rec_comm *comm);
/*
 * Returns the number of the nth rank, or -1 if not known. Launchers number processes: `label` is
 * this process's number, and `processes` is how many there are (0 = not known). If the communicator
 * contains every rank of the job, we return the rank's number in the communicator.
 */
int32_t process_ranks_number(const struct process_ranks *of, uint32_t nth, int32_t label,
			     int32_t processes);
/* Returns the number of ranks of the job, if each of its processes is like this one. */
int32_t process_ranks_count(const struct process_ranks *of, int32_t processes);
