/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the ranks of a program that this process runs. A thread searches the descendants of this
 * process for flight records, which are the agents' memfds. The thread reads each record before the
 * rank overwrites it. We keep each record open, so we lose no entry when a process ends.
 */
#pragma once

#include <stdint.h>

#include "numerics/collect/baseline_collect.h"

#define BASELINE_RANKS_MAX 4096u

struct baseline_ranks;

/*
 * Starts the thread. Copies dir and complete. complete: the program's directory COLLWATCH_COMPLETE,
 * which makes its ranks wait for the reader, or NULL. This process then adopts descendants that
 * lose their parent. Returns 0 or -errno.
 */
int baseline_ranks_start(const char *dir, const char *complete, struct baseline_ranks **ret);

struct baseline_rank_end {
	struct cw_baseline_collected said;
	int error; /* 0 or -errno; -EEXIST: another process of the same rank came first */
};

/*
 * Stops the thread, reads the rest of the records, finishes all files and frees ranks. Omits
 * processes without any op. The caller releases *ret_ends with free(). Returns 0 or -errno.
 */
int baseline_ranks_stop(struct baseline_ranks *ranks, struct baseline_rank_end **ret_ends,
			uint32_t *ret_n);
