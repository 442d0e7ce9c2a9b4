/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a job's numbers by its tensor summaries (docs/numerics.md). It finds the first rank that
 * fed a NaN or infinity, and decides whether loss scaling caused it. It also finds sums near the
 * limit of their type, and different copies of one result.
 *
 * Pure. The input is the summaries of all ranks; the output is a report with pointers into them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CW_NUMERICS_NONE UINT32_MAX

/* One rank's summary of one tensor. */
struct cw_numerics_sample {
	uint32_t rank, comm; /* indices into the job's */
	uint32_t order;      /* within the rank: the earlier launch has the lower number */
	int32_t root_or_peer;
	uint64_t seq;               /* coll_seq, or p2p_seq; 0 = not counted */
	int64_t step;               /* the program's number; -1 = unknown */
	int64_t at_ns;              /* wall time of the call; 0 = unknown */
	uint64_t elements, offered; /* sampled elements, of how many */
	uint64_t nans, infs, zeros;
	double abs_max, abs_min, mean, l2; /* of the finite ones; mean, l2: NaN = out of range */
	uint64_t checksum;
	float at_limit, denormal; /* shares of the sampled elements */
	/* the agent sampled one block in this many; 0 = unknown, but the same on all ranks */
	uint32_t stride;
	uint8_t kind, dtype, redop, is_output;
	const char *site;    /* call site, or NULL; borrowed */
	const char *carried; /* the parameters of its gradients if known, or NULL; borrowed */
	bool is_carried_certain;
};

struct cw_numerics_comm {
	uint64_t id;
	uint32_t instance; /* distinguishes communicators with one id, equally on all members */
	const char *name;  /* may be empty; borrowed */
	uint32_t nranks;
	bool is_uncounted; /* its calls have no numbers common to the members */
};

struct cw_numerics_rank {
	int32_t rank;  /* the user's number; -1 = unknown */
	bool is_whole; /* no earlier summary of it is missing */
	/* The model of its devices; "" or NULL = unknown, or several models; borrowed. */
	const char *device;
	uint32_t cuda_driver, nccl; /* 13000; like ncclGetVersion; 0 = unknown */
};

/* Borrowed. cw_numerics_judge() sorts the samples: by rank, then by order. */
struct cw_numerics_job {
	struct cw_numerics_sample *samples;
	uint32_t n_samples;
	const struct cw_numerics_comm *comms;
	uint32_t n_comms;
	const struct cw_numerics_rank *ranks;
	uint32_t n_ranks;
};

/* How the first NaN or infinity came into a call. */
enum cw_numerics_origin {
	CW_NUMERICS_BY_RANK,  /* the rank fed it, and had not received it before */
	CW_NUMERICS_SUM,      /* all members fed finite numbers: the operation made it */
	CW_NUMERICS_RECEIVED, /* it came out of a call whose inputs we know only in part */
};

struct cw_numerics_first {
	uint32_t sample;
	enum cw_numerics_origin origin;
};

struct cw_numerics_rank_said {
	uint32_t first, last; /* its summaries: [first, last) */
	uint32_t first_bad;   /* CW_NUMERICS_NONE = none */
	uint32_t n_bad;
	bool is_first_seen; /* all summaries before it are here */
};

/* The source of step numbers. */
enum cw_numerics_step_by {
	CW_NUMERICS_BY_PROGRAM, /* the program states it */
	CW_NUMERICS_BY_PERIOD,  /* we count, by the period of the communicator's calls */
	CW_NUMERICS_BY_CALL,    /* each call is a step, by its number: we see no longer period */
};

/* Consecutive steps with NaN or infinity, on one communicator. */
struct cw_numerics_row {
	uint32_t comm;
	enum cw_numerics_step_by step_by;
	uint64_t step, n_steps;
	uint64_t seq; /* its first call with a NaN or infinity */
	uint32_t n_samples;
	bool is_scaling; /* loss scaling explains it */
	double ratio;    /* magnitudes after it, relative to those in it; 0 = unknown */
};

struct cw_numerics_headroom {
	uint32_t sample;             /* the newest; for a sum over members, the largest part */
	bool is_sum;                 /* value is the sum of the members' largest */
	double value, limit, growth; /* growth: a factor per step */
	double steps_left;
	uint64_t warned_step; /* the first step that allowed this warning */
};

enum cw_numerics_end {
	CW_NUMERICS_UPPER, /* saturated at the largest number of the type */
	CW_NUMERICS_LOWER, /* among its denormal numbers */
};

/* Too many numbers at one end of their type's range, step after step. */
struct cw_numerics_range {
	uint32_t sample; /* the newest of the rank with the largest share */
	uint32_t n_steps;
	enum cw_numerics_end end;
	double share; /* of the sampled elements; at the lower end, of the nonzero ones */
	double room;  /* all could grow by this factor and stay finite */
};

/* Different copies that should be equal, bit for bit. */
struct cw_numerics_divergence {
	uint32_t comm, n_groups, n_members; /* members with comparable copies */
	uint64_t seq;
	uint32_t sample;       /* of one member of the smallest group */
	uint32_t other;        /* … of the largest */
	uint32_t n_odd;        /* members of the smaller groups, together */
	bool has_majority;     /* more than half agree */
	uint32_t first, count; /* its summaries in the report's list of them, group by group */
};

/* The total of the inputs differs from the total of the outputs. */
struct cw_numerics_imbalance {
	uint32_t sample; /* an output */
	double in, out, bound;
};

struct cw_numerics_suspect {
	uint32_t rank;
	uint32_t n_divergences, n_comms; /* communicators with it as the odd one */
};

#define CW_NUMERICS_FIRSTS 16u
#define CW_NUMERICS_ROWS 64u
#define CW_NUMERICS_MAX 64u

struct cw_numerics_report {
	struct cw_numerics_rank_said *ranks; /* n_ranks of the job */
	struct cw_numerics_first firsts[CW_NUMERICS_FIRSTS];
	uint32_t n_firsts;      /* several: we do not know which one came first */
	bool is_first_by_clock; /* the hosts' clocks decided */
	uint64_t n_bad;         /* summaries with a NaN or infinity */
	struct cw_numerics_row rows[CW_NUMERICS_ROWS];
	uint32_t n_rows, n_rows_over_limit;
	bool is_all_scaling; /* there are bad ones, and loss scaling explains each */
	struct cw_numerics_headroom headroom[CW_NUMERICS_MAX];
	uint32_t n_headroom, n_headroom_over_limit;
	struct cw_numerics_range ranges[CW_NUMERICS_MAX];
	uint32_t n_ranges, n_ranges_over_limit;
	struct cw_numerics_divergence divergences[CW_NUMERICS_MAX];
	uint32_t n_divergences, n_divergences_over_limit;
	/*
	 * Divergences that raise no alarm: NCCL may have computed these sums on each member, and
	 * members with equal devices agree (replicas.c).
	 */
	struct cw_numerics_divergence roundings[CW_NUMERICS_MAX];
	uint32_t n_roundings, n_roundings_over_limit;
	uint32_t *divergent; /* summaries of divergences and roundings */
	uint32_t n_divergent;
	struct cw_numerics_imbalance imbalances[CW_NUMERICS_MAX];
	uint32_t n_imbalances, n_imbalances_over_limit;
	struct cw_numerics_suspect suspects[CW_NUMERICS_FIRSTS];
	uint32_t n_suspects;
	/* Calls with compared copies, and with compared sums. */
	uint64_t n_replicas_checked, n_sums_checked;
};

/* O(n log n). 0 or -ENOMEM. */
int cw_numerics_judge(struct cw_numerics_job *job, struct cw_numerics_report *ret);
/* Releases the report's contents; takes NULL. */
void cw_numerics_report_fini(struct cw_numerics_report *report);

/* True if the user should sample at it. */
bool cw_numerics_is_alarming(const struct cw_numerics_report *report);

/* The largest finite number of a type; 0 = not a floating point type. */
double cw_numerics_limit(unsigned dtype);

static inline bool cw_numerics_is_bad(const struct cw_numerics_sample *l)
{
	return l->nans != 0 || l->infs != 0;
}
