/* SPDX-License-Identifier: Apache-2.0 */
/* The times that pages took. All zeros = no times. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct score_times {
	int64_t *ns; /* owned */
	size_t n, cap;
};

/* Adds a time. */
void cw_score_times_add(struct score_times *t, int64_t ns);
/*
 * Returns the smallest time that is no less than this percentage of all times, or 0 if there are
 * none. Sorts them.
 */
int64_t cw_score_times_at(struct score_times *t, unsigned percent);
void cw_score_times_fini(struct score_times *t);
