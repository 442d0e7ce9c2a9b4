/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the ranks of a program that this process runs. A thread looks for flight records among
 * the descendants of this process, where each agent's record is a memfd. It reads each record as
 * often as necessary. We keep each record open, so no entry is lost when its process ends.
 */
#pragma once

#include <stdint.h>

#include "numerics/collect/baseline_collect.h"

#define BASELINE_RANKS_MAX 4096u

struct baseline_ranks;

/*
 * Starts the thread. Copies dir and complete. complete is the program's directory
 * COLLWATCH_COMPLETE, which makes its ranks wait for the reader, or NULL. Makes this process adopt
 * descendants that lose their parent. Returns 0 or -errno.
 */
int baseline_ranks_start(const char *dir, const char *complete, struct baseline_ranks **ret);

struct baseline_rank_end {
	struct cw_baseline_collected said;
	int error; /* 0, or -errno: -EEXIST = another process of the same rank came first */
};

/*
 * Reads the rest, finishes all files and frees ranks. Omits processes without a single op. The
 * caller frees *ret_ends. Returns 0 or -errno.
 */
int baseline_ranks_stop(struct baseline_ranks *ranks, struct baseline_rank_end **ret_ends,
			uint32_t *ret_n);
