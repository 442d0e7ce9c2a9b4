/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks that one process is (docs/design/leader.md). A process that drives several devices has
 * several places in one communicator, each on a device of its own, and is as many ranks: each may
 * be held up by itself, and the others of its process wait for it as anybody does. A process that
 * only uses another device for another communicator is one rank.
 *
 * Pure; what a record says is a stranger's.
 */
#pragma once

#include <stdint.h>

#include "digest/rank.h"

/* As many as one machine has for the CUDA driver. */
#define PROCESS_RANKS_MAX 64u

/* A place in the communicator, and the device that the process has there. */
struct process_place {
	int32_t comm_rank, device;
};

struct process_ranks {
	const struct cw_digest_rank *process;           /* borrowed */
	uint32_t n;                                     /* 1 or more */
	struct process_place places[PROCESS_RANKS_MAX]; /* by comm rank, where n > 1 */
	uint32_t nranks;                                /* of that communicator */
	uint32_t first; /* index into the digest's ranks; the maker's */
};

/* By the communicator in which the process has most places, the largest of those. */
void process_ranks_find(const struct cw_digest_rank *process, struct process_ranks *ret);
/* Which of the ranks has this communicator: 0 to n - 1. What is on no device of theirs has the
 * first. */
uint32_t process_ranks_with(const struct process_ranks *of, const struct cw_rec_comm *comm);
/*
 * The nth rank's number. Launchers number processes: `label` is the process's, of `processes` in
 * all (0 = that is not known). The communicator numbers the ranks itself, where all are in it.
 * -1 = none is known.
 */
int32_t process_ranks_number(const struct process_ranks *of, uint32_t nth, int32_t label,
			     int32_t processes);
/* Ranks of so many processes like this one. */
int32_t process_ranks_count(const struct process_ranks *of, int32_t processes);
