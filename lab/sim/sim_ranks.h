/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank processes for tests. It forks N children that each run a function, and reports which of them
 * finish. One thread. The test program must not have used the simulated driver itself.
 */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <sys/types.h>

#define SIM_RANKS_MAX 16
/* Time limit, long enough for a loaded machine. Tests normally finish much earlier. */
#define SIM_RANKS_DEADLINE_MS 120000
/* Time for which we watch a process that must hang. */
#define SIM_RANKS_HANG_MS 300

struct sim_rank {
	int rank;
	int n;
	ncclUniqueId id;
	int arrived_fd;
	void *arg;
};

/* The function of a rank, which runs in a child. Returns the exit status. */
typedef int (*sim_rank_fn)(struct sim_rank *self);

struct sim_ranks {
	int n;
	pid_t pids[SIM_RANKS_MAX];
	int pidfds[SIM_RANKS_MAX];
	bool is_finished[SIM_RANKS_MAX];
	int statuses[SIM_RANKS_MAX]; /* results of waitpid() */
	int arrived_fd;
};

/* Makes a unique id and starts @n children. Returns 0 or -errno. */
int sim_ranks_start(struct sim_ranks *ranks, int n, sim_rank_fn fn, void *arg);
/* In a child: reports to the parent that everything is enqueued. */
void sim_rank_arrived(const struct sim_rank *self);
/*
 * Waits until all children have called sim_rank_arrived(). Returns false if the deadline passes
 * before.
 */
bool sim_ranks_wait_arrived(struct sim_ranks *ranks);
/*
 * Waits until the children in @mask (bit r: rank r) have finished, for at most @timeout_ms. Returns
 * the mask of those that have finished.
 */
unsigned int sim_ranks_wait(struct sim_ranks *ranks, unsigned int mask, int timeout_ms);
/* Returns the exit status of a finished child; -1 = it was killed or has not finished. */
int sim_ranks_exit_status(const struct sim_ranks *ranks, int rank);
/* Kills and reaps the remaining children. */
void sim_ranks_stop(struct sim_ranks *ranks);

/* The device of a rank, for most test functions. */
struct sim_rank_device {
	void *stream;
	ncclComm_t comm;
};

/*
 * Makes a context current, a stream, and the communicator of all ranks. Returns 0, or the line
 * number of the failed call.
 */
int sim_rank_open(const struct sim_rank *self, struct sim_rank_device *ret_dev);
