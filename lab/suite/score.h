/* SPDX-License-Identifier: Apache-2.0 */
/* Counts per class how often the verdict is right. Lists the misses with their reasons. */
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
	uint64_t id; /* hash of file and line of the scenario */
	bool is_control;
};

struct score_class {
	uint64_t expected; /* scenarios in which this class is the answer */
	uint64_t right;    /* scenarios in which we expected and got this class */
	uint64_t given;    /* alerts of this class */
	/* right alerts of this class after which the job did not go on by itself */
	uint64_t given_rightly;
	/* For the right alerts: the time from when the fault could be known to the page. */
	struct score_times pages;
};

#define SCORE_LABELS (CW_CLASS__MAX) /* the label "healthy" means silence */

struct score {
	struct score_class classes[SCORE_LABELS];
	uint64_t confusion[SCORE_LABELS][SCORE_LABELS]; /* by expected and given class */
	uint64_t n, n_hangs, n_controls, n_control_alerts;
	/*
	 * False alerts: unexpected alerts of hangs and controls, and pages after which all ranks
	 * went on.
	 */
	uint64_t n_false_alerts;
	uint64_t n_went_on;
	uint64_t n_second; /* further pages of one hang, beyond the first */
	struct score_proofs proofs;
	/*
	 * n_usual_waits: number of waits whose kind and place we drew like those of healthy jobs.
	 */
	uint64_t n_hanging_waits, n_usual_waits;
	/* numbers for scenarios that expect a post-mortem */
	uint64_t n_postmortems, n_right_postmortems;
	struct waits healthy_waits;
	uint64_t n_pages, n_notices;
	uint64_t n_culprits, n_exact_culprits;
	/* alerts that are certain about the culprits; the wrong ones of these */
	uint64_t n_certain, n_certain_wrong;
	/* Reports that the rank is proven to hang. Wrong: it did not hang, or the job went on. */
	uint64_t n_proven, n_proven_wrong;
	uint64_t n_missed;
	/* Counts of scenarios with a fault of the cluster, by its kind. */
	struct score_cluster cluster[SCORE_CLUSTER__MAX];
	struct score_miss *misses;
	size_t n_misses, cap_misses; /* we keep the first SCORE_KEPT_MISSES */
	/*
	 * The places in files at which scenarios begin, in ascending order. A place that produces
	 * many scenarios counts once.
	 */
	struct score_place *places;
	size_t n_places, cap_places;
	/* The number of scenarios for each pair of properties. */
	uint32_t class_kind[SCORE_LABELS][CW_OP__MAX];
	uint32_t class_layout[SCORE_LABELS][SUITE_LAYOUT__MAX];
	uint32_t kind_layout[CW_OP__MAX][SUITE_LAYOUT__MAX];
};

#define SCORE_KEPT_MISSES 1000u

/* Counts one outcome. */
void cw_score_add(struct score *score, const struct suite_scenario *s, const struct outcome *o);
void cw_score_fini(struct score *score);

/*
 * True if the outcome is silence where we expect silence, or an allowed answer with the right
 * culprits.
 */
bool cw_score_is_right(const struct suite_scenario *s, const struct outcome *o);

/* Returns the 95 % confidence interval of a share k of n (Wilson). For n = 0 it is 0 to 1. */
void cw_score_interval(uint64_t k, uint64_t n, double *ret_low, double *ret_high);

/* True if nothing is wrong: no miss, no false alarm, no scenario whose fault never happened. */
static inline bool cw_score_is_perfect(const struct score *score)
{
	return score->n_missed == 0;
}

/* Prints the matrix, a table per class, and the misses, for users. Sorts the times in *score. */
void cw_score_print(struct score *score, FILE *out);
/* Prints the pairs of class × op kind, class × layout, op kind × layout that no scenario has. */
void cw_score_print_coverage(const struct score *score, FILE *out);
/*
 * Returns how many scenarios people have written. A scenario that is repeated over layouts or kinds
 * counts once.
 */
void cw_score_count_written(const struct score *score, uint64_t *ret_hangs, uint64_t *ret_controls);
/* Returns the number of valid pairs that no scenario has. */
uint32_t cw_score_n_uncovered(const struct score *score);
