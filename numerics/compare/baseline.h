/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two runs of a job, op by op (docs/numerics.md#baseline-and-check). It finds the first op
 * that only one run has, or that differs in its numbers by more than rounding explains.
 *
 * Pure. The input is one rank's rows of both runs; the output is its differences. Afterwards we
 * combine the ranks' results. So memory depends on the largest rank only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/op.h"
#include "numerics/compare/baseline_row.h"

#define CW_BASELINE_NONE UINT32_MAX
#define CW_BASELINE_NAME 32
#define CW_BASELINE_ROWS (1u << 22) /* per rank and run: 256 MiB */

struct cw_baseline_comm {
	uint64_t id; /* of this run; identifies ranks of one run, never runs */
	uint32_t nranks;
	int32_t comm_rank; /* -1 = unknown */
	char name[CW_BASELINE_NAME];
};

/*
 * One rank of one run. Borrowed. Rows are in the order of the calls; their indices are valid for
 * the communicators and sites.
 */
struct cw_baseline_run {
	const struct cw_baseline_row *rows;
	uint32_t n_rows;
	const struct cw_baseline_comm *comms;
	uint32_t n_comms;
	char *const *sites;
	uint32_t n_sites;
	/* Ops to omit; NULL = none. */
	const bool *is_comm_denied, *is_site_denied;
};

/* Allowed difference of elements: |a - b| <= atol + rtol max(|a|, |b|). */
struct cw_baseline_tolerance {
	double rtol, atol;
};

struct cw_baseline_options {
	struct cw_baseline_tolerance of[CW_DTYPE__MAX];
	bool is_kind_denied[CW_OP__MAX];
	/*
	 * The runs' groups have different numbers of members, and communicators at the same index
	 * correspond (group_run.h).
	 */
	bool are_groups;
};

/* True if each member has its part: in a group of another size, the part has another size. */
static inline bool cw_baseline_is_in_parts(const struct cw_baseline_row *row)
{
	return row->kind == CW_OP_ALL_GATHER || row->kind == CW_OP_REDUCE_SCATTER;
}

enum cw_baseline_what {
	CW_BASELINE_EQUAL,
	/* A different sequence of ops. */
	CW_BASELINE_MISSING, /* the baseline has an op, the check has not */
	CW_BASELINE_EXTRA,   /* the other way round */
	CW_BASELINE_UNLIKE,  /* from here on the sequences have too little in common */
	/* The same op with other arguments. */
	CW_BASELINE_DTYPE,
	CW_BASELINE_COUNT,
	CW_BASELINE_REDOP,
	CW_BASELINE_ROOT,
	CW_BASELINE_SITE,
	/* Equal arguments, different numbers. */
	CW_BASELINE_NONFINITE, /* the count of NaN and infinities */
	CW_BASELINE_TENSOR_STATS,
};

/* How we recognised ops of two runs as the same; a higher value is weaker. */
enum cw_baseline_way {
	CW_BASELINE_BY_STEP, /* step as marked, kind, size, type and call site */
	CW_BASELINE_BY_CALL, /* kind, size, type and call site */
	CW_BASELINE_BY_SITE, /* kind and call site */
	CW_BASELINE_BY_KIND,
};

struct cw_baseline_difference {
	enum cw_baseline_what what;
	enum cw_baseline_side side;   /* for nonfinite and numbers */
	enum cw_baseline_value value; /* … for numbers */
	double a, b, allowed;  /* … for numbers: the values, and their allowed difference */
	uint32_t row_a, row_b; /* CW_BASELINE_NONE = this run has none */
	uint32_t place;        /* number of the rank's earlier ops */
};

struct cw_baseline_said {
	enum cw_baseline_way way; /* the weakest way of its communicators */
	/* Ops of either run; … paired with an op of the other; … with compared numbers. */
	uint64_t n_a, n_b, n_paired, n_checked;
	uint64_t n_denied;                 /* pairs that the user excluded */
	uint64_t n_own;                    /* … of groups: each member may have its own values */
	uint64_t n_skipped_a, n_skipped_b; /* before the other run begins */
	/* ops of the other run that were lost in this one */
	uint64_t n_unrecorded_a, n_unrecorded_b;
	uint64_t n_missing, n_extra, n_unlike, n_called_otherwise, n_tensor_stats; /* differences */
	struct cw_baseline_difference first; /* EQUAL = none */
};

/* 0 or -ENOMEM. Takes linear time as long as the sequences are alike. */
int cw_baseline_compare(const struct cw_baseline_run *a, const struct cw_baseline_run *b,
			const struct cw_baseline_options *options, struct cw_baseline_said *ret);

/*
 * Compares the numbers of two ops with equal arguments; *ret: the value that differs, and its
 * allowed difference.
 */
bool cw_baseline_close(const struct cw_baseline_row *a, const struct cw_baseline_row *b,
		       uint32_t nranks, const struct cw_baseline_options *options,
		       struct cw_baseline_difference *ret);

/* Defaults: docs/numerics.md#tolerances. */
void cw_baseline_options_init(struct cw_baseline_options *options);

/* "absmax", "mean", "l2" */
const char *cw_baseline_value_name(enum cw_baseline_value value);
/* "missing", "extra", …, "tensor_stats" */
const char *cw_baseline_what_name(enum cw_baseline_what what);
/* "step", "call", "site", "kind" */
const char *cw_baseline_way_name(enum cw_baseline_way way);

/* ---- the whole job ---- */

/* One rank's first difference, for comparison with other ranks'. */
struct cw_baseline_first {
	int32_t rank;
	uint64_t comm; /* its id in the run that has the op */
	struct cw_baseline_difference difference;
	struct cw_baseline_row a, b; /* if the run has it */
};

/*
 * True if x happened before y. On the same communicator, numbers decide, and within one op the
 * input comes before the output. On different communicators, the step decides, then the number of
 * the rank's earlier ops. That number means little if ranks have different work. In one step,
 * operators come before collectives, which get their numbers from them. The exception is a
 * collective of the same rank with equal inputs in both runs: the rank's operators did not cause
 * its difference.
 */
bool cw_baseline_is_before(const struct cw_baseline_first *x, const struct cw_baseline_first *y);
