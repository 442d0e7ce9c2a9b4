/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a program that this process runs, watched beside it: a thread looks for flight
 * records among the descendants of this process, which an agent's is a memfd of, and reads each as
 * often as it must. A record lives as long as it is open here, so that the end of a process takes
 * nothing away.
 */
#pragma once

#include <stdint.h>

#include "numerics/collect/baseline_collect.h"

#define BASELINE_RANKS_MAX 4096u

struct baseline_ranks;

/*
 * Copies dir, and complete: the directory COLLWATCH_COMPLETE of the program, so that its ranks wait
 * to be read, or NULL. Descendants that lose their parent become this process's. 0 or -errno.
 */
int baseline_ranks_start(const char *dir, const char *complete, struct baseline_ranks **ret);

struct baseline_rank_end {
	struct cw_baseline_collected said;
	int error; /* 0, or what failed: -EEXIST = another process of that rank was there before */
};

/*
 * Reads what there still is, ends all files and frees it. Processes without a single op are left
 * out. The caller frees *ret_ends.
 */
int baseline_ranks_stop(struct baseline_ranks *ranks, struct baseline_rank_end **ret_ends,
			uint32_t *ret_n);
