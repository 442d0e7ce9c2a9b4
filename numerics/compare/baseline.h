/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two runs of a job, op by op (docs/numerics.md#baseline-and-check). It finds the first op
 * that only one run has, or whose statistics differ by more than rounding explains.
 *
 * Pure. The input is one rank's rows of both runs; the output is the differences of that rank. The
 * caller combines the results of all ranks, so the memory depends only on the largest rank.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/op.h"
#include "numerics/compare/baseline_row.h"

#define CW_BASELINE_NONE UINT32_MAX
#define CW_BASELINE_NAME 32
#define CW_BASELINE_ROWS (1u << 22) /* limit per rank and run; the rows take 256 MiB */

struct cw_baseline_comm {
	uint64_t id; /* identifies a communicator within one run; differs between runs */
	uint32_t nranks;
	int32_t comm_rank; /* -1 = unknown */
	char name[CW_BASELINE_NAME];
};

/*
 * One rank of one run. All pointers are borrowed. Rows are in the order of the calls, and have
 * indices into comms and sites.
 */
struct cw_baseline_run {
	const struct cw_baseline_row *rows;
	uint32_t n_rows;
	const struct cw_baseline_comm *comms;
	uint32_t n_comms;
	char *const *sites;
	uint32_t n_sites;
	/* Per communicator or site: true = omit its ops. NULL = omit none. */
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
	 * True if the runs' groups have different numbers of members. Then communicators with the
	 * same index correspond (group_run.h).
	 */
	bool are_groups;
};

/*
 * True if each member has its own part of the tensor. Such a part has another size in a group of
 * another size.
 */
static inline bool cw_baseline_is_in_parts(const struct cw_baseline_row *row)
{
	return row->kind == CW_OP_ALL_GATHER || row->kind == CW_OP_REDUCE_SCATTER;
}

enum cw_baseline_what {
	CW_BASELINE_EQUAL,
	/* Differences in the sequence of ops: */
	CW_BASELINE_MISSING, /* only the baseline has the op */
	CW_BASELINE_EXTRA,   /* only the check has the op */
	CW_BASELINE_UNLIKE,  /* from this op on, the sequences have too little in common */
	/* Differences in the arguments of the same op: */
	CW_BASELINE_DTYPE,
	CW_BASELINE_COUNT,
	CW_BASELINE_REDOP,
	CW_BASELINE_ROOT,
	CW_BASELINE_SITE,
	/* Differences in the tensors of an op with equal arguments: */
	CW_BASELINE_NONFINITE, /* the number of NaN and infinities */
	CW_BASELINE_TENSOR_STATS,
};

/*
 * The properties by which we recognised ops of two runs as the same. A higher value is weaker
 * evidence.
 */
enum cw_baseline_way {
	CW_BASELINE_BY_STEP, /* the program's step number, kind, size, type and call site */
	CW_BASELINE_BY_CALL, /* kind, size, type and call site */
	CW_BASELINE_BY_SITE, /* kind and call site */
	CW_BASELINE_BY_KIND,
};

struct cw_baseline_difference {
	enum cw_baseline_what what;
	enum cw_baseline_side side;   /* valid for NONFINITE and TENSOR_STATS */
	enum cw_baseline_value value; /* valid for TENSOR_STATS */
	/* for TENSOR_STATS: the values of both runs, and the allowed difference */
	double a, b, allowed;
	uint32_t row_a, row_b; /* CW_BASELINE_NONE = this run has no such op */
	uint32_t place;        /* number of earlier ops of the rank */
};

struct cw_baseline_said {
	/* the weakest way that we used for one of the rank's communicators */
	enum cw_baseline_way way;
	/*
	 * Numbers of ops: of each run, paired with an op of the other run, and paired with compared
	 * statistics.
	 */
	uint64_t n_a, n_b, n_paired, n_checked;
	uint64_t n_denied; /* pairs that the user excluded */
	/* pairs in groups whose members may each have their own values */
	uint64_t n_own;
	uint64_t n_skipped_a, n_skipped_b; /* ops before the other run begins */
	/* ops that one run has lost and the other run has */
	uint64_t n_unrecorded_a, n_unrecorded_b;
	uint64_t n_missing, n_extra, n_unlike, n_called_otherwise, n_tensor_stats; /* differences */
	struct cw_baseline_difference first; /* CW_BASELINE_EQUAL = no difference */
};

/*
 * Compares the runs a (baseline) and b (check). Returns 0 or -ENOMEM. The time is linear in the
 * number of ops if the sequences are alike.
 */
int cw_baseline_compare(const struct cw_baseline_run *a, const struct cw_baseline_run *b,
			const struct cw_baseline_options *options, struct cw_baseline_said *ret);

/*
 * True if the statistics of two ops with equal arguments are close enough. Otherwise *ret has the
 * value that differs, and its allowed difference.
 */
bool cw_baseline_close(const struct cw_baseline_row *a, const struct cw_baseline_row *b,
		       uint32_t nranks, const struct cw_baseline_options *options,
		       struct cw_baseline_difference *ret);

/* Sets the defaults of docs/numerics.md#tolerances. */
void cw_baseline_options_init(struct cw_baseline_options *options);

/* Returns "absmax", "mean" or "l2". */
const char *cw_baseline_value_name(enum cw_baseline_value value);
/* Returns "missing", "extra", …, "tensor_stats". */
const char *cw_baseline_what_name(enum cw_baseline_what what);
/* Returns "step", "call", "site" or "kind". */
const char *cw_baseline_way_name(enum cw_baseline_way way);

/* ---- the whole job ---- */

/* One rank's first difference, which we compare with those of other ranks. */
struct cw_baseline_first {
	int32_t rank;
	uint64_t comm; /* the communicator's id in the run that has the op */
	struct cw_baseline_difference difference;
	struct cw_baseline_row a, b; /* the op in each run; unset if the run lacks it */
};

/*
 * True if x happened before y. On the same communicator, the call number decides. Within one op the
 * input comes before the output. On different communicators, the step decides, and then the number
 * of earlier ops of the rank. That number means little if ranks have different work.
 *
 * Within one step, operators come before collectives, because they produce the inputs of
 * collectives. There is one exception: a collective of the same rank whose inputs are equal in both
 * runs comes first. The rank's operators did not cause its difference.
 */
bool cw_baseline_is_before(const struct cw_baseline_first *x, const struct cw_baseline_first *y);
