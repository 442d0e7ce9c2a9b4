/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of one process (docs/design/leader.md). A process that drives several devices is a
 * member of one communicator several times, each time on a device of its own. It counts as that
 * many ranks. Each of these may stall by itself, and the others of its process wait for it like any
 * rank. A process that only uses another device for another communicator is one rank.
 *
 * Pure; the values of a record are untrusted.
 */
#pragma once

#include <stdint.h>

#include "digest/rank.h"

/* The CUDA driver's limit for one machine. */
#define PROCESS_RANKS_MAX 64u

/* One membership in the communicator, and the process's device there. */
struct process_place {
	int32_t comm_rank, device;
};

struct process_ranks {
	const struct cw_digest_rank *process;           /* borrowed */
	uint32_t n;                                     /* 1 or more */
	struct process_place places[PROCESS_RANKS_MAX]; /* in order of comm rank, if n > 1 */
	uint32_t nranks;                                /* size of that communicator */
	uint32_t first; /* index into the digest's ranks; set by digest.c */
};

/*
 * Finds the ranks from the communicator with most memberships of the process, the largest
 * among equals.
 */
void process_ranks_find(const struct cw_digest_rank *process, struct process_ranks *ret);
/*
 * Index of the rank that uses this communicator's device: 0 to n - 1. A communicator on none of
 * their devices belongs to the first rank.
 */
uint32_t process_ranks_with(const struct process_ranks *of, const struct cw_rec_comm *comm);
/*
 * The nth rank's number. Launchers number processes: `label` is the process's number, of
 * `processes` in all (0 = not known). If every rank is in the communicator, we use the
 * communicator's own numbers. -1 = not known.
 */
int32_t process_ranks_number(const struct process_ranks *of, uint32_t nth, int32_t label,
			     int32_t processes);
/* Number of ranks if each of the processes is like this one. */
int32_t process_ranks_count(const struct process_ranks *of, int32_t processes);
