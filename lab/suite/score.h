/* SPDX-License-Identifier: Apache-2.0 */
/* How often the verdict is right, per class; what was missed, and why. */
#pragma once

#include <stdio.h>

#include "lab/suite/outcome.h"
#include "lab/suite/scenario/scenario.h"
#include "lab/suite/score_cluster.h"
#include "lab/suite/score_proofs.h"
#include "lab/suite/score_times.h"
#include "lab/suite/waits.h"

struct score_miss {
	char *scenario, *where, *reason;
};

struct score_place {
	uint64_t id; /* hash of file and line */
	bool is_control;
};

struct score_class {
	uint64_t expected;      /* scenarios in which it is the answer */
	uint64_t right;         /* … and was given */
	uint64_t given;         /* alerts of this class */
	uint64_t given_rightly; /* … as the answer, or an allowed other one, and it did not go on */
	struct score_times pages; /* of those: from when it could be known to the page */
};

#define SCORE_LABELS (CW_CLASS__MAX) /* healthy is silence */

struct score {
	struct score_class classes[SCORE_LABELS];
	uint64_t confusion[SCORE_LABELS][SCORE_LABELS]; /* expected × given */
	uint64_t n, n_hangs, n_controls, n_control_alerts;
	/* Beyond those expected, of hangs and controls, and those after which all went on. */
	uint64_t n_false_alerts;
	uint64_t n_went_on;
	uint64_t n_second; /* of one hang, beyond the page that it has */
	struct score_proofs proofs;
	uint64_t n_hanging_waits, n_usual_waits; /* … whose kind and place were drawn as usual */
	uint64_t n_postmortems, n_right_postmortems; /* of scenarios that say what it must be */
	struct waits healthy_waits;
	uint64_t n_pages, n_notices;
	uint64_t n_culprits, n_exact_culprits;
	uint64_t n_certain, n_certain_wrong; /* of who it is */
	uint64_t n_proven, n_proven_wrong;   /* of that it hangs: it did not, or it went on */
	uint64_t n_missed;
	struct score_cluster cluster[SCORE_CLUSTER__MAX]; /* scenarios that have such a fault */
	struct score_miss *misses;
	size_t n_misses, cap_misses; /* the first SCORE_KEPT_MISSES */
	/* Places in files at which scenarios begin, however many each gives; ascending. */
	struct score_place *places;
	size_t n_places, cap_places;
	/* Scenarios by what they exercise. */
	uint32_t class_kind[SCORE_LABELS][CW_OP__MAX];
	uint32_t class_layout[SCORE_LABELS][SUITE_LAYOUT__MAX];
	uint32_t kind_layout[CW_OP__MAX][SUITE_LAYOUT__MAX];
};

#define SCORE_KEPT_MISSES 1000u

/* Counts one outcome. 0 or -ENOMEM. */
int cw_score_add(struct score *score, const struct suite_scenario *s, const struct outcome *o);
void cw_score_fini(struct score *score);

/* Silence where silence is expected, else an answer that is allowed, culprits included. */
bool cw_score_is_right(const struct suite_scenario *s, const struct outcome *o);

/* Bounds of a share k of n with 95 % confidence (Wilson). n = 0: 0 and 1. */
void cw_score_interval(uint64_t k, uint64_t n, double *ret_low, double *ret_high);

/* Wrong by any measure: a miss, a false alarm, a scenario whose fault never happened. */
static inline bool cw_score_is_perfect(const struct score *score)
{
	return score->n_missed == 0;
}

/* What people read: matrix, table per class, misses. Sorts its times. */
void cw_score_print(struct score *score, FILE *out);
/* Pairs of class × op kind, class × layout, op kind × layout that no scenario has. */
void cw_score_print_coverage(const struct score *score, FILE *out);
/* How many scenarios were written, whatever number of layouts or kinds each is repeated over. */
void cw_score_count_written(const struct score *score, uint64_t *ret_hangs, uint64_t *ret_controls);
/* How many valid pairs are missing. */
uint32_t cw_score_n_uncovered(const struct score *score);
