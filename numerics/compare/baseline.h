/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs of a job held against each other, op by op (docs/numerics.md#baseline-and-check): which
 * op is the first that one run has and the other has not, or whose numbers are further apart than
 * rounding explains.
 *
 * Pure. The rows of one rank of both runs go in, and what differs comes out; what the ranks said
 * is joined afterwards. A job is so large as its largest rank.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/op.h"
#include "numerics/compare/baseline_row.h"

#define CW_BASELINE_NONE UINT32_MAX
#define CW_BASELINE_NAME 32
#define CW_BASELINE_ROWS (1u << 22) /* of a rank and run: 256 MiB */

struct cw_baseline_comm {
	uint64_t id; /* of this run; joins ranks, never runs */
	uint32_t nranks;
	int32_t comm_rank; /* -1 = not known */
	char name[CW_BASELINE_NAME];
};

/*
 * One rank of one run. Borrowed. Rows are in the order in which they were called; their indices are
 * within the communicators and sites.
 */
struct cw_baseline_run {
	const struct cw_baseline_row *rows;
	uint32_t n_rows;
	const struct cw_baseline_comm *comms;
	uint32_t n_comms;
	char *const *sites;
	uint32_t n_sites;
	/* Ops to leave out; NULL = none. */
	const bool *is_comm_denied, *is_site_denied;
};

/* Elements may differ by so much: |a - b| <= atol + rtol max(|a|, |b|). */
struct cw_baseline_tolerance {
	double rtol, atol;
};

struct cw_baseline_options {
	struct cw_baseline_tolerance of[CW_DTYPE__MAX];
	bool is_kind_denied[CW_OP__MAX];
	/* The runs are of groups that have other numbers of members in each, and their
	 * communicators the same by index (group_run.h). */
	bool are_groups;
};

/* Of which each member has its part: in a group of another size one of another size. */
static inline bool cw_baseline_is_in_parts(const struct cw_baseline_row *row)
{
	return row->kind == CW_OP_ALL_GATHER || row->kind == CW_OP_REDUCE_SCATTER;
}

enum cw_baseline_what {
	CW_BASELINE_EQUAL,
	/* Another sequence of ops. */
	CW_BASELINE_MISSING, /* the baseline has an op, the check has not */
	CW_BASELINE_EXTRA,   /* the other way round */
	CW_BASELINE_UNLIKE,  /* from here on the sequences have too little in common */
	/* The same op, called in another way. */
	CW_BASELINE_DTYPE,
	CW_BASELINE_COUNT,
	CW_BASELINE_REDOP,
	CW_BASELINE_ROOT,
	CW_BASELINE_SITE,
	/* Called alike, with other numbers. */
	CW_BASELINE_NONFINITE, /* how many NaN and infinities */
	CW_BASELINE_NUMBERS,
};

/* By what the ops of two runs were recognised as the same; the weaker, the higher. */
enum cw_baseline_way {
	CW_BASELINE_BY_STEP, /* step as marked, kind, size, type and call site */
	CW_BASELINE_BY_CALL, /* kind, size, type and call site */
	CW_BASELINE_BY_SITE, /* kind and call site */
	CW_BASELINE_BY_KIND,
};

struct cw_baseline_difference {
	enum cw_baseline_what what;
	enum cw_baseline_side side;   /* of nonfinite and numbers */
	enum cw_baseline_value value; /* … of numbers */
	double a, b, allowed;         /* … what they are, and how far apart they may be */
	uint32_t row_a, row_b;        /* CW_BASELINE_NONE = it has none */
	uint32_t place;               /* how many ops of the rank were before it */
};

struct cw_baseline_said {
	enum cw_baseline_way way; /* the weakest of its communicators' */
	/* Ops of either run; … with an op of the other; … whose numbers were compared. */
	uint64_t n_a, n_b, n_paired, n_checked;
	uint64_t n_denied;                 /* pairs that were to be left out */
	uint64_t n_own;                    /* … of groups: each member may have what is its own */
	uint64_t n_skipped_a, n_skipped_b; /* before the other run begins */
	uint64_t n_unrecorded_a, n_unrecorded_b; /* ops of the other that were lost here */
	uint64_t n_missing, n_extra, n_unlike, n_called_otherwise, n_numbers; /* that differ */
	struct cw_baseline_difference first; /* EQUAL = there is none */
};

/* 0 or -ENOMEM. Time is linear as long as the sequences are alike. */
int cw_baseline_compare(const struct cw_baseline_run *a, const struct cw_baseline_run *b,
			const struct cw_baseline_options *options, struct cw_baseline_said *ret);

/* Which differs, and by how much it may, of two ops that are called alike. */
bool cw_baseline_close(const struct cw_baseline_row *a, const struct cw_baseline_row *b,
		       uint32_t nranks, const struct cw_baseline_options *options,
		       struct cw_baseline_difference *ret);

/* Defaults: docs/numerics.md#tolerances. */
void cw_baseline_options_init(struct cw_baseline_options *options);

/* "absmax", "mean", "l2" */
const char *cw_baseline_value_name(enum cw_baseline_value value);
/* "missing", "extra", …, "numbers" */
const char *cw_baseline_what_name(enum cw_baseline_what what);
/* "step", "call", "site", "kind" */
const char *cw_baseline_way_name(enum cw_baseline_way way);

/* ---- the whole job ---- */

/* What one rank's first difference is, for who compares it with other ranks'. */
struct cw_baseline_first {
	int32_t rank;
	uint64_t comm; /* id in the run that has the op */
	struct cw_baseline_difference difference;
	struct cw_baseline_row a, b; /* as far as it has them */
};

/*
 * Whether x was before y: by their numbers on the same communicator, in one op what went in before
 * what came out; on different communicators by the step, and then by how many ops the rank had made
 * before. The latter says nothing where ranks have different work. In one step operators are before
 * collectives, which get their numbers from them, but for one of the same rank into which went what
 * went in before.
 */
bool cw_baseline_is_before(const struct cw_baseline_first *x, const struct cw_baseline_first *y);
