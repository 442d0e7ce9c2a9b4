/* SPDX-License-Identifier: Apache-2.0 */
/* Troubles that are proven rather than waited for: how often they are, how soon, and how surely. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/suite/outcome.h"
#include "lab/suite/scenario/scenario.h"

/* Proven within so long of when both are so: the fault can be seen, and a rank waits. */
#define SCORE_SOON_NS INT64_C(5000000000)

/*
 * Mismatches of calls and memberships, cycles and deaths by failure that were expected, and for
 * which somebody waits.
 */
struct score_proofs {
	uint64_t n;
	uint64_t n_soon;    /* proven within SCORE_SOON_NS, and paged by then */
	uint64_t n_right;   /* class and culprits */
	uint64_t n_certain; /* … and called certain */
	/*
	 * Mismatches for which nobody waited when they were told, or ever, and those told within
	 * SCORE_SOON_NS of the call that differs. Who waits later counts above, too.
	 */
	uint64_t n_wrong_data, n_wrong_data_soon;
};

/*
 * o: what was said of it, right or not; NULL = nothing. truth: the scenario's first outcome, which
 * has what befell its ranks.
 */
void cw_score_proofs_add(struct score_proofs *p, const struct suite_scenario *s,
			 const struct suite_answer *first, const struct outcome *o,
			 const struct outcome *truth, bool is_right);
