/* SPDX-License-Identifier: Apache-2.0 */
/* Counts waits that ended by themselves, by their length, and how many of them paged users. */
#pragma once

#include "lab/suite/outcome.h"

/* The classes of length begin at 1, 2, 5, 10 and 30 minutes, and at 1, 2 and 4 hours. */
#define WAITS_LENGTHS 8u

struct waits_count {
	uint64_t n, false_pages, notices;
	uint64_t n_paged;         /* waits with at least one page */
	uint64_t n_often_noticed; /* waits with more than one notice */
};

struct waits {
	/*
	 * Waits of jobs with a known time-out of at most an hour, of jobs with a longer one, and of
	 * jobs without one.
	 */
	struct waits_count known[WAITS_LENGTHS], longer[WAITS_LENGTHS];
	struct waits_count none[WAITS_LENGTHS];
};

/* Counts a wait. timeout_ns is the job's time-out; 0 = unknown. */
void cw_waits_add(struct waits *waits, int64_t timeout_ns, const struct outcome_wait *wait);
/* Returns the shortest wait of the i-th class of length. */
int64_t cw_waits_length_ns(unsigned i);
struct waits_count cw_waits_sum(const struct waits_count *counts);
struct waits_count cw_waits_total(const struct waits *waits);
