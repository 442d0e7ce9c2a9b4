/* SPDX-License-Identifier: Apache-2.0 */
/* How long pages took. All zeros = none. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct score_times {
	int64_t *ns; /* owned */
	size_t n, cap;
};

/* 0 or -ENOMEM. */
int cw_score_times_add(struct score_times *t, int64_t ns);
/* The least that is no less than so many hundredths of them; sorts them. n = 0: 0. */
int64_t cw_score_times_at(struct score_times *t, unsigned percent);
void cw_score_times_fini(struct score_times *t);
