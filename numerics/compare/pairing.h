/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs the ops of two runs. A lane is a communicator's collectives, or its sends or receives with
 * one peer. NCCL numbers the ops of a lane, so each run has a sequence per lane. We search for the
 * longest common subsequence of both sequences (Myers, "An O(ND) difference algorithm and its
 * variations", 1986). The other ops are hunks.
 *
 * There are several ways to recognise an op (enum cw_baseline_way). We begin with the strictest
 * way. We stop when the two runs share at least half of the shorter sequence. An unknown call site
 * matches any site, because a rank makes its first calls before the agent can read its stack.
 * Native code matches a Python line in the other run, too.
 *
 * A loop makes every sequence periodic. So a run without the warm-up matches the other run at many
 * positions. If the program marks its steps, the marks decide. Otherwise the statistics decide: if
 * those at the beginning differ, we search for a position from which calls and statistics agree for
 * a while.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "numerics/compare/baseline.h"

/*
 * The ops of a lane in one run. Op number i + 1 is rows[order[i]]. If order[i] is CW_BASELINE_NONE,
 * the op was lost and may match any op.
 */
struct pairing_ops {
	const struct cw_baseline_row *rows;
	const uint32_t *order;
	uint32_t n;
	/*
	 * For each site number of the run, the number that the same site has in both runs. Odd
	 * numbers are native code, even numbers are Python lines.
	 */
	const uint32_t *sites;
};

/*
 * True if y may be the op x with different arguments. Operators must also belong to the same
 * module.
 */
bool pairing_is_same_kind(const struct pairing_ops *a, const struct cw_baseline_row *x,
			  const struct pairing_ops *b, const struct cw_baseline_row *y);

/* True if both call sites are known, both are Python lines or both native code, and they differ. */
bool pairing_is_other_site(const struct pairing_ops *a, const struct cw_baseline_row *x,
			   const struct pairing_ops *b, const struct cw_baseline_row *y);

/* Ops [a, a + n) of one run are paired with ops [b, b + n) of the other. */
struct pairing_run {
	uint32_t a, b, n;
};

struct pairing {
	enum cw_baseline_way way;
	struct pairing_run *runs; /* in order; ops outside all runs have no counterpart */
	uint32_t n_runs;
	/* Number of ops at the beginning of one run that the other run lacks. */
	uint32_t skipped_a, skipped_b;
	/* the rest has too little in common: we did not pair the ops after the last run */
	bool is_cut;
};

/* Returns op i of the lane; NULL = the op was lost. */
const struct cw_baseline_row *pairing_at(const struct pairing_ops *ops, uint32_t i);

/* Pairs a and b. Returns 0 or -ENOMEM. The caller calls pairing_fini() on *ret. */
int pairing_find(const struct pairing_ops *a, const struct pairing_ops *b, uint32_t nranks,
		 const struct cw_baseline_options *options, struct pairing *ret);
void pairing_fini(struct pairing *pairing);
