/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a job's numbers by its tensor summaries (docs/numerics.md). It finds the first rank that
 * fed a NaN or infinity, and decides whether loss scaling caused it. It also finds sums near the
 * limit of their type, and different copies of one result.
 *
 * Pure. The input is the summaries of all ranks. The output is a report with indices into them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CW_NUMERICS_NONE UINT32_MAX

/* One rank's summary of one tensor. */
struct cw_numerics_sample {
	uint32_t rank, comm; /* indices into the job's ranks and comms */
	uint32_t order;      /* position in the order of the rank's launches */
	int32_t root_or_peer;
	uint64_t seq;               /* coll_seq, or p2p_seq; 0 = not counted */
	int64_t step;               /* the program's step number; -1 = unknown */
	int64_t at_ns;              /* wall time of the call; 0 = unknown */
	uint64_t elements, offered; /* number of sampled elements, and of all elements */
	uint64_t nans, infs, zeros;
	/* of the finite elements; mean and l2: NaN = out of range */
	double abs_max, abs_min, mean, l2;
	uint64_t checksum;
	float at_limit, denormal; /* shares of the sampled elements */
	/* The agent sampled one block out of this many. 0 = unknown, but the same on all ranks. */
	uint32_t stride;
	uint8_t kind, dtype, redop, is_output;
	const char *site; /* call site, or NULL; borrowed */
	/* parameters whose gradients the call carried, or NULL = unknown; borrowed */
	const char *carried;
	bool is_carried_certain;
};

struct cw_numerics_comm {
	uint64_t id;
	uint32_t instance; /* distinguishes communicators with one id; equal on all members */
	const char *name;  /* may be empty; borrowed */
	uint32_t nranks;
	/* members number its calls differently, so numbers of two members mean nothing */
	bool is_uncounted;
};

struct cw_numerics_rank {
	int32_t rank;  /* the user's number of the rank; -1 = unknown */
	bool is_whole; /* no earlier summary of this rank is missing */
	/* The model of the rank's devices. "" or NULL = unknown, or several models; borrowed. */
	const char *device;
	/* versions: cuda_driver 13000 = CUDA 13.0; nccl like ncclGetVersion(); 0 = unknown */
	uint32_t cuda_driver, nccl;
};

/* All pointers are borrowed. cw_numerics_judge() sorts the samples by rank, then by order. */
struct cw_numerics_job {
	struct cw_numerics_sample *samples;
	uint32_t n_samples;
	const struct cw_numerics_comm *comms;
	uint32_t n_comms;
	const struct cw_numerics_rank *ranks;
	uint32_t n_ranks;
};

/* How the first NaN or infinity got into a call. */
enum cw_numerics_origin {
	CW_NUMERICS_BY_RANK, /* the rank fed the number and had not received it before */
	/* all members passed finite values, so the operation made the bad value */
	CW_NUMERICS_SUM,
	CW_NUMERICS_RECEIVED, /* the bad value came out of a call of which we know only some inputs
			       */
};

struct cw_numerics_first {
	uint32_t sample;
	enum cw_numerics_origin origin;
};

struct cw_numerics_rank_said {
	uint32_t first, last; /* indices of the rank's summaries in the job: [first, last) */
	uint32_t first_bad;   /* CW_NUMERICS_NONE = none */
	uint32_t n_bad;
	bool is_first_seen; /* no summary before first_bad is missing */
};

/* The source of step numbers. */
enum cw_numerics_step_by {
	CW_NUMERICS_BY_PROGRAM, /* the program states its step numbers */
	CW_NUMERICS_BY_PERIOD,  /* we count steps, by the period of the communicator's calls */
	CW_NUMERICS_BY_CALL,    /* there is no period, so each call is a step */
};

/* Consecutive steps with NaN or infinity on one communicator. */
struct cw_numerics_row {
	uint32_t comm;
	enum cw_numerics_step_by step_by;
	uint64_t step, n_steps;
	uint64_t seq; /* number of the row's first call with a NaN or infinity */
	uint32_t n_samples;
	bool is_scaling; /* loss scaling explains the row */
	double ratio;    /* magnitudes after the row divided by magnitudes in it; 0 = unknown */
};

struct cw_numerics_headroom {
	/* index of the newest summary; for a sum over members, of the largest part */
	uint32_t sample;
	bool is_sum;                 /* value is the sum of the members' largest magnitudes */
	double value, limit, growth; /* growth: factor by which the value grows per step */
	double steps_left;
	uint64_t warned_step; /* the first step that allowed this warning */
};

enum cw_numerics_end {
	CW_NUMERICS_UPPER, /* saturated at the type's largest number */
	CW_NUMERICS_LOWER, /* among the type's denormal numbers */
};

/* Too many numbers at one end of their type's range, step after step. */
struct cw_numerics_range {
	uint32_t sample; /* the newest summary of the rank with the largest share */
	uint32_t n_steps;
	enum cw_numerics_end end;
	double share; /* share of the sampled elements; at the lower end, of the nonzero ones */
	double room;  /* all elements could grow by this factor and stay finite */
};

/* Copies of one result that should be equal, bit for bit, but differ. */
struct cw_numerics_divergence {
	uint32_t comm, n_groups, n_members; /* n_members: members with comparable copies */
	uint64_t seq;
	uint32_t sample;   /* a summary of the smallest group of equal copies */
	uint32_t other;    /* a summary of the largest group */
	uint32_t n_odd;    /* number of members in the smaller groups together */
	bool has_majority; /* more than half of the members agree */
	/* place in the report's list `divergent`, where its summaries are listed group by group */
	uint32_t first, count;
};

/* A call whose total of inputs differs from its total of outputs. */
struct cw_numerics_imbalance {
	uint32_t sample; /* index of one of the call's outputs */
	double in, out, bound;
};

struct cw_numerics_suspect {
	uint32_t rank;
	/* n_comms: number of communicators on which this rank was the odd one */
	uint32_t n_divergences, n_comms;
};

#define CW_NUMERICS_FIRSTS 16u
#define CW_NUMERICS_ROWS 64u
#define CW_NUMERICS_MAX 64u

struct cw_numerics_report {
	struct cw_numerics_rank_said *ranks; /* array with one element per rank of the job */
	struct cw_numerics_first firsts[CW_NUMERICS_FIRSTS];
	uint32_t n_firsts;      /* if there are several, we do not know which rank was first */
	bool is_first_by_clock; /* only the hosts' clocks show that this rank was first */
	uint64_t n_bad;         /* summaries with a NaN or infinity */
	struct cw_numerics_row rows[CW_NUMERICS_ROWS];
	uint32_t n_rows, n_rows_over_limit;
	bool is_all_scaling; /* there are bad summaries, and loss scaling explains all of them */
	struct cw_numerics_headroom headroom[CW_NUMERICS_MAX];
	uint32_t n_headroom, n_headroom_over_limit;
	struct cw_numerics_range ranges[CW_NUMERICS_MAX];
	uint32_t n_ranges, n_ranges_over_limit;
	struct cw_numerics_divergence divergences[CW_NUMERICS_MAX];
	uint32_t n_divergences, n_divergences_over_limit;
	/*
	 * Divergences that raise no alarm. NCCL may have computed these sums on each member
	 * separately, and members with equal devices agree (replicas.c).
	 */
	struct cw_numerics_divergence roundings[CW_NUMERICS_MAX];
	uint32_t n_roundings, n_roundings_over_limit;
	uint32_t *divergent; /* samples of divergences and roundings */
	uint32_t n_divergent;
	struct cw_numerics_imbalance imbalances[CW_NUMERICS_MAX];
	uint32_t n_imbalances, n_imbalances_over_limit;
	struct cw_numerics_suspect suspects[CW_NUMERICS_FIRSTS];
	uint32_t n_suspects;
	/* Number of calls whose copies we compared, and of calls whose sums we compared. */
	uint64_t n_replicas_checked, n_sums_checked;
};

/* Judges the job in O(n log n). Returns 0 or -ENOMEM. */
int cw_numerics_judge(struct cw_numerics_job *job, struct cw_numerics_report *ret);
/* Releases the report's contents. Accepts NULL. */
void cw_numerics_report_fini(struct cw_numerics_report *report);

/* True if the user should look at the report. */
bool cw_numerics_is_alarming(const struct cw_numerics_report *report);

/* Returns the largest finite number of a type; 0 = not a floating point type. */
double cw_numerics_limit(unsigned dtype);

static inline bool cw_numerics_is_bad(const struct cw_numerics_sample *l)
{
	return l->nans != 0 || l->infs != 0;
}
