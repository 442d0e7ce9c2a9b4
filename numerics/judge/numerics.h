/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tensor summaries say of a job's numbers (docs/numerics.md): who was the first to feed a
 * number that is none, whether that is loss scaling at work, which sums come near what their type
 * holds, which copies of one result differ.
 *
 * Pure. The summaries of all ranks go in, a report comes out, which points into them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CW_NUMERICS_NONE UINT32_MAX

/* One tensor, as one rank's summary of it says. */
struct cw_numerics_look {
	uint32_t rank, comm; /* indices into the job's */
	uint32_t order;      /* among the rank's: the earlier launch has the lower number */
	int32_t root_or_peer;
	uint64_t seq;               /* coll_seq, or p2p_seq; 0 = not counted */
	int64_t step;               /* what the program calls it; -1 = it does not say */
	int64_t at_ns;              /* wall time of the call; 0 = not known */
	uint64_t elements, offered; /* looked at, of how many */
	uint64_t nans, infs, zeros;
	double abs_max, abs_min, mean, l2; /* of the finite ones; mean, l2: NaN = out of range */
	uint64_t checksum;
	float at_limit, denormal; /* shares of what was looked at */
	uint32_t stride; /* looked at one block in so many; 0 = not known, for all are alike */
	uint8_t kind, dtype, redop, is_output;
	const char *site;    /* where it was called from, or NULL; borrowed */
	const char *carried; /* whose gradients, as far as somebody knows, or NULL; borrowed */
	bool is_carried_certain;
};

struct cw_numerics_comm {
	uint64_t id;
	uint32_t instance; /* tells those of one id apart, on all members alike */
	const char *name;  /* may be empty; borrowed */
	uint32_t nranks;
	bool is_uncounted; /* calls have no numbers that the members share */
};

struct cw_numerics_rank {
	int32_t rank;  /* as people know it; -1 = not known */
	bool is_whole; /* no look of it is missing before the first that is here */
	/* The model of its devices; "" or NULL = not known, or they are of several; borrowed. */
	const char *device;
	uint32_t cuda_driver, nccl; /* 13000; as ncclGetVersion; 0 = not known */
};

/* Borrowed. Looks are sorted by cw_numerics_judge(): by rank, then by order. */
struct cw_numerics_job {
	struct cw_numerics_look *looks;
	uint32_t n_looks;
	const struct cw_numerics_comm *comms;
	uint32_t n_comms;
	const struct cw_numerics_rank *ranks;
	uint32_t n_ranks;
};

/* How the first number that is none came into a call. */
enum cw_numerics_origin {
	CW_NUMERICS_FED,      /* the rank fed it, and nothing had brought it there */
	CW_NUMERICS_SUM,      /* all members fed finite numbers: the operation made it */
	CW_NUMERICS_RECEIVED, /* it came out of a call, of which not all inputs were looked at */
};

struct cw_numerics_first {
	uint32_t look;
	enum cw_numerics_origin origin;
};

struct cw_numerics_rank_said {
	uint32_t first, last; /* its looks: [first, last) */
	uint32_t first_bad;   /* CW_NUMERICS_NONE = none */
	uint32_t n_bad;
	bool is_first_seen; /* all looks before it are here */
};

/* What a step is numbered by. */
enum cw_numerics_step_by {
	CW_NUMERICS_BY_PROGRAM, /* the program says it */
	CW_NUMERICS_BY_PERIOD,  /* counted, by the period of the communicator's calls */
	CW_NUMERICS_BY_CALL,    /* each call is one, by its number: no longer period is seen */
};

/* A row of steps with numbers that are none, on one communicator. */
struct cw_numerics_row {
	uint32_t comm;
	enum cw_numerics_step_by step_by;
	uint64_t step, n_steps;
	uint64_t seq; /* the first call of it with such a number */
	uint32_t n_looks;
	bool is_scaling; /* loss scaling explains it */
	double ratio;    /* magnitudes afterwards to those in it; 0 = not known */
};

struct cw_numerics_headroom {
	uint32_t look; /* the newest; of a sum over members, that of the largest part */
	bool is_sum;   /* value is the sum of the members' largest */
	double value, limit, growth; /* growth: a factor per step */
	double steps_left;
	uint64_t warned_step; /* the first step at which that could be said */
};

enum cw_numerics_end {
	CW_NUMERICS_UPPER, /* cut off at the largest number of the type */
	CW_NUMERICS_LOWER, /* among its denormal ones */
};

/* Too many numbers at one end of what their type holds, step after step. */
struct cw_numerics_range {
	uint32_t look; /* the newest of the rank with the largest share */
	uint32_t n_steps;
	enum cw_numerics_end end;
	double share; /* of what was looked at; at the lower end of what is not zero */
	double room;  /* by what factor all could be larger and finite still */
};

/* Copies that should be equal, bit for bit, and are not. */
struct cw_numerics_divergence {
	uint32_t comm, n_groups, n_members; /* members whose copies could be compared */
	uint64_t seq;
	uint32_t look;         /* of one member of the smallest group */
	uint32_t other;        /* … of the largest */
	uint32_t n_odd;        /* members of the smaller groups, together */
	bool has_majority;     /* more than half agree */
	uint32_t first, count; /* its looks in the report's list of them, group by group */
};

/* The sum of what went in is not the sum of what came out. */
struct cw_numerics_imbalance {
	uint32_t look; /* an output */
	double in, out, bound;
};

struct cw_numerics_suspect {
	uint32_t rank;
	uint32_t n_divergences, n_comms; /* in which it was the odd one */
};

#define CW_NUMERICS_FIRSTS 16u
#define CW_NUMERICS_ROWS 64u
#define CW_NUMERICS_MAX 64u

struct cw_numerics_report {
	struct cw_numerics_rank_said *ranks; /* n_ranks of the job */
	struct cw_numerics_first firsts[CW_NUMERICS_FIRSTS];
	uint32_t n_firsts;      /* several: which of them came first is not known */
	bool is_first_by_clock; /* the hosts' clocks decided */
	uint64_t n_bad;         /* looks with a number that is none */
	struct cw_numerics_row rows[CW_NUMERICS_ROWS];
	uint32_t n_rows, n_rows_left_out;
	bool is_all_scaling; /* there are bad ones, and loss scaling explains each */
	struct cw_numerics_headroom headroom[CW_NUMERICS_MAX];
	uint32_t n_headroom, n_headroom_left_out;
	struct cw_numerics_range ranges[CW_NUMERICS_MAX];
	uint32_t n_ranges, n_ranges_left_out;
	struct cw_numerics_divergence divergences[CW_NUMERICS_MAX];
	uint32_t n_divergences, n_divergences_left_out;
	/*
	 * As divergences, and no alarm: sums that NCCL may have worked out on each member, and
	 * members with like devices agree (replicas.c).
	 */
	struct cw_numerics_divergence roundings[CW_NUMERICS_MAX];
	uint32_t n_roundings, n_roundings_left_out;
	uint32_t *divergent; /* looks, as divergences and roundings say */
	uint32_t n_divergent;
	struct cw_numerics_imbalance imbalances[CW_NUMERICS_MAX];
	uint32_t n_imbalances, n_imbalances_left_out;
	struct cw_numerics_suspect suspects[CW_NUMERICS_FIRSTS];
	uint32_t n_suspects;
	/* Calls whose copies were compared, and whose sums were. */
	uint64_t n_replicas_checked, n_sums_checked;
};

/* O(n log n). 0 or -ENOMEM. */
int cw_numerics_judge(struct cw_numerics_job *job, struct cw_numerics_report *ret);
/* What it points to; takes NULL. */
void cw_numerics_report_fini(struct cw_numerics_report *report);

/* There is something for people to look at. */
bool cw_numerics_is_alarming(const struct cw_numerics_report *report);

/* The largest finite number of a type; 0 = it is no floating point type. */
double cw_numerics_limit(unsigned dtype);

static inline bool cw_numerics_is_bad(const struct cw_numerics_look *l)
{
	return l->nans != 0 || l->infs != 0;
}
