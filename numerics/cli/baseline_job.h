/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two directories of baselines held against each other, one rank at a time, so that a job takes no
 * more memory than its largest rank.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "numerics/collect/baseline_file.h"
#include "numerics/compare/baseline.h"

#define BASELINE_FILTERS 64u

enum baseline_key { BASELINE_KIND, BASELINE_COMM, BASELINE_SITE, BASELINE_KEYS };

/* Which ops are compared: those that some pattern to keep names, for each key with such, and none
 * to skip. Shell patterns (fnmatch(3)). */
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

/* What there is of a rank in one directory. */
struct baseline_part {
	bool is_there, is_finished;
	uint32_t n_ranks; /* of ranks together: how many are in it */
	char *denied;     /* operators that were not looked at; NULL or "" = none */
	uint64_t counters[CW_BASELINE_COUNTERS];
};

/* An op, with what its row only has numbers for. */
struct baseline_op {
	bool is_there;
	struct cw_baseline_row row;
	struct cw_baseline_comm comm;
	char site[CW_BASELINE_SITE_BYTES + 1];
	uint32_t call; /* of an operator: which of its module's calls of it in the step, from 1 */
};

/* A rank's collectives, or its operators; or what all ranks have together. */
struct baseline_rank {
	int32_t rank; /* BASELINE_ALL_RANKS = all */
	enum cw_baseline_file_part part;
	struct baseline_part a, b;
	struct cw_baseline_said said;  /* where both are there */
	struct baseline_op op_a, op_b; /* of its first difference */
};

#define BASELINE_ALL_RANKS (-1)

enum baseline_outcome { BASELINE_OUTCOME_EQUAL, BASELINE_OUTCOME_DIFFERS, BASELINE_OUTCOME_NONE };

struct baseline_job {
	struct baseline_rank *parts; /* by rank, collectives first; of other numbers of ranks one */
	uint32_t n_parts;
	int32_t world_size_a, world_size_b; /* other numbers of ranks, or 0 */
	uint64_t n_unlike_a, n_unlike_b; /* … calls on communicators that are not compared then */
	/* Ranks in all; with something that both runs have; with something that differs. */
	uint32_t n_ranks, n_compared, n_differ;
	uint32_t first;              /* index of the part that differs first */
	struct cw_baseline_said sum; /* of all parts; first is not filled */
	enum baseline_outcome outcome;
	char why[256]; /* it cannot be compared, or is not known to be equal */
};

/* The pattern is borrowed. -EINVAL: not KEY=PATTERN; -E2BIG: too many. */
int baseline_request_filter(struct baseline_request *request, const char *text, bool skips);

/* "all_reduce", or "operator" */
const char *baseline_kind_name(unsigned kind);

/* 0, or -errno with err naming the file. Blocks on the disk. */
int baseline_job_compare(const char *a, const char *b, const struct baseline_request *request,
			 struct baseline_job *ret, struct cw_err *err);
void baseline_job_fini(struct baseline_job *job);
