/* SPDX-License-Identifier: Apache-2.0 */
/* Troubles that are proven rather than waited for: how often they are, how soon, and how surely. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "suite/outcome.h"
#include "suite/scenario/scenario.h"

/* Paged within so long of when it could be known. */
#define SCORE_SOON_NS INT64_C(5000000000)

/*
 * Mismatches of calls and memberships, cycles and deaths by failure that were expected, and for
 * which somebody waits.
 */
struct score_proofs {
	uint64_t n;
	uint64_t n_soon;    /* proven, and paged within SCORE_SOON_NS */
	uint64_t n_right;   /* class and culprits */
	uint64_t n_certain; /* … and called certain */
};

/* o: what was said of it, right or not; NULL = nothing. holds_up: somebody waits for it. */
void cw_score_proofs_add(struct score_proofs *p, const struct suite_scenario *s,
			 const struct suite_answer *first, const struct outcome *o, bool is_right,
			 bool holds_up);
