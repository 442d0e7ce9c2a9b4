/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job, and the tracker of stalls that watches it. We make the job's state anew for each instant
 * of a fake clock. A test sets the job's behaviour, lets time pass and reads the tracker's
 * decision.
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
	uint64_t done;    /* number of collectives that all ranks have completed */
	int64_t fault_ns; /* start of the wait for the culprit; 0 = no rank waits */
	/* rank that the others wait for; SB_MAX_RANKS = all ranks are inside the call */
	uint32_t culprit;
	int64_t active_until_ns; /* the culprit's last sign of work */
	uint32_t liveness;       /* liveness of the culprit */
	uint32_t host_wait;      /* what the culprit sleeps in: enum cw_host_wait */
	uint32_t flags;          /* further CW_RANKF_* flags of the culprit */
	int64_t job_timeout_ns;
	int64_t ended_ns;
	int32_t exit_code;
	uint32_t known;
	uint32_t culprit_node_state;
	uint64_t wrong_count; /* the culprit's count; 0 = the usual one */
	uint32_t n_movers;    /* number of ranks that make progress on another comm all the time */
	/* Result of the last evaluation. */
	struct cw_stall_decision d;
	uint32_t verdict_class; /* class of the verdict */
};

/* New for each test: eight ranks, no rank waits, rank 3 is the designated culprit. */
extern struct stall_job j;

void stall_job_setup(void);
void stall_job_teardown(void);

/* Lets all other ranks wait for the culprit from now on. The culprit has worked until now. */
void stall_job_fault(void);

/* Evaluates the job as it is now. */
void stall_job_step(void);
/*
 * Calls stall_job_step() once a second until the tracker reaches the phase. Returns how long that
 * took, or -1.
 */
int64_t stall_job_run_until(uint32_t phase, int64_t limit_ns);

/*
 * For a more complex job: stall_job_builder() returns a builder for the test to change, with times
 * relative to SB_NOW. stall_job_evaluate() takes the builder and the snapshot made from it, and
 * evaluates the snapshot with its thresholds and policy.
 */
struct sb *stall_job_builder(void);
void stall_job_evaluate(struct sb *b, struct cw_snapshot *snap);
