/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that the daemon proves instead of waiting: how many, how soon, and how surely. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/suite/outcome.h"
#include "lab/suite/scenario/scenario.h"

/* A proof is soon if it comes within this time after the fault can be seen and a rank waits. */
#define SCORE_SOON_NS INT64_C(5000000000)

/*
 * Counts expected mismatches of calls and memberships, cycles and deaths by failure for which a
 * rank waits.
 */
struct score_proofs {
	uint64_t n;
	uint64_t n_soon;    /* proven within SCORE_SOON_NS, and paged by then */
	uint64_t n_right;   /* class and culprits are right */
	uint64_t n_certain; /* right, and reported as certain */
	/*
	 * Mismatches for which no rank waited when the page came, or ever. The second number counts
	 * those that were paged within SCORE_SOON_NS of the call that differs. If a rank waits
	 * later, the mismatch counts above, too.
	 */
	uint64_t n_wrong_data, n_wrong_data_soon;
};

/*
 * o is the report on the incident, right or not; NULL = none. truth is the scenario's first
 * outcome, which has the facts about its ranks.
 */
void cw_score_proofs_add(struct score_proofs *p, const struct suite_scenario *s,
			 const struct suite_answer *first, const struct outcome *o,
			 const struct outcome *truth, bool is_right);
