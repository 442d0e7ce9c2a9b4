/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two directories of baselines. We compare one rank at a time, so we need no more memory
 * than the largest rank takes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/collect/baseline_file.h"
#include "numerics/compare/baseline.h"

#define BASELINE_FILTERS 64u

enum baseline_key { BASELINE_KIND, BASELINE_COMM, BASELINE_SITE, BASELINE_KEYS };

/*
 * A filter of the ops to compare. Patterns are shell patterns (fnmatch(3)). For each key with
 * patterns to keep, an op must match one of them. An op that matches a pattern to skip is not
 * compared.
 */
struct baseline_filter {
	enum baseline_key key;
	bool skips;
	const char *pattern;
};

struct baseline_request {
	struct cw_baseline_options options;
	struct baseline_filter filters[BASELINE_FILTERS];
	uint32_t n_filters;
};

/* One directory's data about a rank. */
struct baseline_part {
	bool is_there, is_finished;
	uint32_t n_ranks; /* number of ranks included, if the part covers all ranks together */
	char *denied;     /* operators that the run did not sample; NULL or "" = none */
	uint64_t counters[CW_BASELINE_COUNTERS];
};

/* An op, and the texts that its row refers to by number. */
struct baseline_op {
	bool is_there;
	struct cw_baseline_row row;
	struct cw_baseline_comm comm;
	char site[CW_BASELINE_SITE_BYTES + 1];
	/* for an operator: the number of its call by its module in this step, from 1 */
	uint32_t call;
};

/*
 * The collectives of a rank, the operators of a rank, or the calls that all ranks have in common.
 */
struct baseline_rank {
	int32_t rank; /* BASELINE_ALL_RANKS = all */
	enum cw_baseline_file_part part;
	struct baseline_part a, b;
	struct cw_baseline_said said;  /* valid if both runs have this part */
	struct baseline_op op_a, op_b; /* the ops of the rank's first difference */
};

#define BASELINE_ALL_RANKS (-1)

enum baseline_outcome { BASELINE_OUTCOME_EQUAL, BASELINE_OUTCOME_DIFFERS, BASELINE_OUTCOME_NONE };

struct baseline_job {
	/*
	 * Sorted by rank; of one rank, collectives first. Only one part if the numbers of ranks
	 * differ.
	 */
	struct baseline_rank *parts;
	uint32_t n_parts;
	/* both runs' numbers of ranks if these differ, else 0 */
	int32_t world_size_a, world_size_b;
	/* if the numbers of ranks differ: calls on communicators that we do not compare */
	uint64_t n_unlike_a, n_unlike_b;
	/*
	 * Numbers of ranks: all, those with ops common to both runs, and those with a difference.
	 */
	uint32_t n_ranks, n_compared, n_differ;
	uint32_t first;              /* index of the part with the first difference */
	struct cw_baseline_said sum; /* the sum of all parts, without `first` */
	enum baseline_outcome outcome;
	char why[256]; /* reason why the runs are not comparable, or not known to be equal */
};

/*
 * Adds a filter and borrows its pattern. Returns 0; -EINVAL if text is not KEY=PATTERN; -E2BIG if
 * there are too many filters.
 */
int baseline_request_filter(struct baseline_request *request, const char *text, bool skips);

/* Returns the name of a kind of op: "all_reduce", …, or "operator". */
const char *baseline_kind_name(unsigned kind);

/*
 * Compares the baselines in directories a and b. Returns 0, or -errno with the file's name in err.
 * Blocks on the disk. The caller calls baseline_job_fini() on *ret.
 */
int baseline_job_compare(const char *a, const char *b, const struct baseline_request *request,
			 struct baseline_job *ret, struct cw_err *err);
void baseline_job_fini(struct baseline_job *job);
