/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which op of one run is which of the other. Ops of one lane (a communicator's collectives, or its
 * sends or receives with one peer) are numbered by the library, so each run's are a sequence; of
 * two sequences the longest common one is looked for (Myers, "An O(ND) difference algorithm and its
 * variations", 1986), and what is between its parts are hunks.
 *
 * By what ops are recognised is tried from the strictest way on (enum cw_baseline_way), until the
 * two have at least half of the shorter one in common. A call site that one run does not know is
 * taken for any, and so is code where the other run has a line of Python: a rank's first calls come
 * before the agent can read its stack.
 *
 * A loop makes every sequence periodic, and a run without the warm-up is a piece of the other from
 * many places on. Where the program marks its steps these decide. Where it does not, the numbers
 * do: if those at the beginning differ, the place is looked for from which on calls and numbers of
 * a stretch agree.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "numerics/compare/baseline.h"

/*
 * One run's part of a lane: op number i + 1 is rows[order[i]], or was lost on the way, and may have
 * been any, where order[i] is CW_BASELINE_NONE.
 */
struct pairing_ops {
	const struct cw_baseline_row *rows;
	const uint32_t *order;
	uint32_t n;
	/* Of each site's number, one that means the same in both runs; odd: code, not a line. */
	const uint32_t *sites;
};

/* Two of which one may be the other called otherwise: of operators, that of the same module. */
bool pairing_is_same_kind(const struct pairing_ops *a, const struct cw_baseline_row *x,
			  const struct pairing_ops *b, const struct cw_baseline_row *y);

/* Known of both, of one sort, and not the same. */
bool pairing_is_other_site(const struct pairing_ops *a, const struct cw_baseline_row *x,
			   const struct pairing_ops *b, const struct cw_baseline_row *y);

/* Ops [a, a + n) of one are ops [b, b + n) of the other. */
struct pairing_run {
	uint32_t a, b, n;
};

struct pairing {
	enum cw_baseline_way way;
	struct pairing_run *runs; /* in order; what lies between, before and behind has no other */
	uint32_t n_runs;
	/* Ops at the beginning of one that the other leaves out. */
	uint32_t skipped_a, skipped_b;
	bool is_cut; /* they have too little in common: behind the last run nothing is said */
};

/* NULL = was lost */
const struct cw_baseline_row *pairing_at(const struct pairing_ops *ops, uint32_t i);

/* 0 or -ENOMEM */
int pairing_find(const struct pairing_ops *a, const struct pairing_ops *b, uint32_t nranks,
		 const struct cw_baseline_options *options, struct pairing *ret);
void pairing_fini(struct pairing *pairing);
