/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that ended by themselves, by their length, and how often somebody was paged for one. */
#pragma once

#include "lab/suite/outcome.h"

/* From 1, 2, 5, 10 and 30 minutes on, and from 1, 2 and 4 hours. */
#define WAITS_LENGTHS 8u

struct waits_count {
	uint64_t n, false_pages, notices;
	uint64_t n_paged;         /* waits with a page, however many it had */
	uint64_t n_often_noticed; /* waits with more than one notice */
};

struct waits {
	/* Of jobs whose own time-out is known: of an hour at most, and of more. */
	struct waits_count known[WAITS_LENGTHS], longer[WAITS_LENGTHS];
	struct waits_count none[WAITS_LENGTHS];
};

/* timeout_ns: the job's; 0 = none is known. */
void cw_waits_add(struct waits *waits, int64_t timeout_ns, const struct outcome_wait *wait);
/* The shortest wait of the i-th length. */
int64_t cw_waits_length_ns(unsigned i);
struct waits_count cw_waits_sum(const struct waits_count *counts);
struct waits_count cw_waits_total(const struct waits *waits);
