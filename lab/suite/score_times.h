/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the times until pages. A zeroed list is empty. */
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
 * Returns the smallest time that is no less than this percentage of all times; 0 = there are no
 * times. Sorts the list.
 */
int64_t cw_score_times_at(struct score_times *t, unsigned percent);
void cw_score_times_fini(struct score_times *t);
