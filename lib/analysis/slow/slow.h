/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds slow ranks in a job that makes progress. A rank is slow if the other ranks of a
 * communicator had to wait for it again and again. Such a rank entered collectives later than most
 * ranks, and most ranks entered no other call before it arrived. A host that runs ahead of its
 * device may be behind other hosts without blocking them, and such a lag does not count. Time that
 * a rank itself spent waiting for others does not count either.
 *
 * The search needs the windows of all members. It serves recordings and interactive use, and never
 * raises an alert. Times of ranks on different hosts are only as comparable as their clocks. If no
 * rank of the same host is on time, the confidence is at most "possible".
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

#define CW_SLOW_MAX 8u

struct cw_slow {
	uint32_t rank, comm; /* indices; `comm` is the comm in which the rank costs most */
	uint32_t confidence; /* enum cw_confidence: likely or possible */
	uint32_t n_ops;      /* number of compared collectives */
	uint32_t n_late;     /* number of collectives in which the others waited for the rank */
	int64_t late_ns;     /* average delay after the median, over the n_late collectives */
	uint32_t percent;    /* share of the observed time that the delays cost */
};

/* The slow ranks. The rank with the highest cost comes first. */
struct cw_slow_list {
	struct cw_slow v[CW_SLOW_MAX];
	uint32_t n;
};

/* Fills *ret with the slow ranks. Pure; O(window ops × log members). Returns 0 or -ENOMEM. */
int cw_slow_find(const struct cw_snapshot *snap, struct cw_slow_list *ret);
