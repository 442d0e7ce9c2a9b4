/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job and the tracker of stalls that watches it. We draw up the job's state anew for each
 * instant of a fake clock. A test sets the job's behaviour, lets time pass and reads the
 * tracker's decision.
 */
#pragma once

#include "analysis/stall/stall.h"
#include "tests/support/snapshot/snap_builder.h"

struct stall_job {
	struct cw_stall *tracker;
	struct cw_thresholds t;
	uint32_t policy;
	uint32_t n_ranks;
	int64_t now_ns;
	/* The job's activity. */
	uint64_t done;           /* collectives completed by all */
	int64_t fault_ns;        /* start of the wait for the culprit; 0 = no rank waits */
	uint32_t culprit;        /* SB_MAX_RANKS = all are inside */
	int64_t active_until_ns; /* the culprit's last sign of work */
	uint32_t liveness;       /* the culprit's */
	uint32_t host_wait;      /* likewise: enum cw_host_wait */
	uint32_t flags;          /* and more of its CW_RANKF_* */
	int64_t job_timeout_ns;
	int64_t ended_ns;
	int32_t exit_code;
	uint32_t known;
	uint32_t culprit_node_state;
	uint64_t wrong_count; /* the culprit's count; 0 = the usual one */
	uint32_t n_movers;    /* ranks that get on with another comm all the time */
	/* Result of the last look. */
	struct cw_stall_decision d;
	uint32_t verdict_class; /* of the verdict */
};

/* Fresh for each test: eight ranks, no rank waits, rank 3 is the designated culprit. */
extern struct stall_job j;

void stall_job_setup(void);
void stall_job_teardown(void);

/* From now on all others wait for the culprit, which has worked until now. */
void stall_job_fault(void);

/* One look at the job as it is now. */
void stall_job_step(void);
/* Steps once a second until the phase is reached; returns how long that took, or -1. */
int64_t stall_job_run_until(uint32_t phase, int64_t limit_ns);

/*
 * The same for a job with more to it: its builder, to be changed, with times relative to SB_NOW;
 * and one look at the snapshot made of it. Takes both; thresholds and policy are the snapshot's.
 */
struct sb *stall_job_builder(void);
void stall_job_evaluate(struct sb *b, struct cw_snapshot *snap);
