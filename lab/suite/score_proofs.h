/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts faults for which the daemon need not wait, because it can prove them: their number, and
 * the speed and certainty of the reports.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/suite/outcome.h"
#include "lab/suite/scenario/scenario.h"

/*
 * A proof counts as soon if it comes within this time after the fault is visible and a rank waits.
 */
#define SCORE_SOON_NS INT64_C(5000000000)

/*
 * Counts these expected faults, if a rank waits because of them: mismatches of calls and
 * memberships, cycles, and deaths by failure.
 */
struct score_proofs {
	uint64_t n;
	uint64_t n_soon;    /* proven and paged within SCORE_SOON_NS */
	uint64_t n_right;   /* reported with the right class and culprits */
	uint64_t n_certain; /* right, and reported as certain */
	/*
	 * Mismatches for which no rank waited before the page, or ever. The second number counts
	 * pages within SCORE_SOON_NS of the call that differs. If a rank waits later, the mismatch
	 * also counts above.
	 */
	uint64_t n_wrong_data, n_wrong_data_soon;
};

/*
 * Counts one incident. o: the report on it, right or not; NULL = none. truth: the scenario's first
 * outcome, which has the facts about its ranks.
 */
void cw_score_proofs_add(struct score_proofs *p, const struct suite_scenario *s,
			 const struct suite_answer *first, const struct outcome *o,
			 const struct outcome *truth, bool is_right);
