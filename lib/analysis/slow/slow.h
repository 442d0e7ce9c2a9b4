/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds ranks that come late in a job that makes progress. A rank is slow if the other ranks of a
 * communicator had to wait for it again and again. It entered collectives later than most ranks,
 * and most ranks entered no other call before it arrived. A host that runs ahead of its device may
 * be behind other hosts without holding them up, so this does not count. Time that a rank itself
 * spent waiting for others does not count either.
 *
 * The search needs the windows of all members. It serves recordings and interactive use, and never
 * raises an alert. Times of ranks on different hosts are only as comparable as their clocks. If no
 * rank of the same host is on time, the confidence is no more than possible.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

#define CW_SLOW_MAX 8u

struct cw_slow {
	uint32_t rank, comm; /* indices; the comm is the one in which the rank costs most */
	uint32_t confidence; /* enum cw_confidence: likely or possible */
	uint32_t n_ops;      /* collectives compared */
	uint32_t n_late;     /* those in which the others waited for it */
	int64_t late_ns;     /* average delay after the median, over the n_late collectives */
	uint32_t percent;    /* share of the observed time that the delays cost */
};

/* The entry with the highest cost comes first. */
struct cw_slow_list {
	struct cw_slow v[CW_SLOW_MAX];
	uint32_t n;
};

/* Pure; O(window ops × log members). Returns 0 or -ENOMEM. */
int cw_slow_find(const struct cw_snapshot *snap, struct cw_slow_list *ret);
