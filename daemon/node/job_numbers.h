/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the numbers of jobs whose ranks summarise tensors (numerics/node/numbers.h), as far as
 * this node has their ranks, and says in the journal what is news. Nobody is alerted: what numbers
 * a job may have is its users' to say (docs/design/summaries.md#while-the-job-runs).
 *
 * Loop thread only; reads memory, does not block.
 */
#pragma once

#include <stdint.h>

#include "identity/job_id.h"
#include "numerics/node/numbers.h"

struct cw_job_numbers;
struct cw_reading_budget;
struct cw_process;
struct cw_record;

/*
 * Ranks of a job that are looked at: more than a machine has GPUs, so that nobody who starts
 * thousands of processes holds the loop up. The others of a larger job count as another node's.
 */
#define CW_JOB_NUMBERS_RANKS 64u
/*
 * A job's processes that summarise tensors, those that live first, then of the dead those whom
 * nobody has replaced, with summaries or without: CW_JOB_NUMBERS_RANKS at most. Borrowed until the
 * loop turns. Sets *ret_living to how many of them live, and *ret_left_out, unless NULL, to how
 * many more there are.
 */
uint32_t cw_job_numbers_processes(const struct cw_job_numbers *n, const struct cw_job_id *job,
				  const struct cw_process *ret[static CW_JOB_NUMBERS_RANKS],
				  uint32_t *ret_living, uint32_t *ret_left_out);

/* A job is looked at once a second at most. */
#define CW_JOB_NUMBERS_NS INT64_C(1000000000)

/* table: of the node's processes; borrowed. 0 or -ENOMEM. */
int cw_job_numbers_new(struct cw_process **table, struct cw_reading_budget *budget,
		       struct cw_job_numbers **ret);
/* Takes NULL; returns NULL. */
struct cw_job_numbers *cw_job_numbers_free(struct cw_job_numbers *n);

/*
 * Looks at one job: the one that has waited longest, where one is due. Each costs 1 % of a core at
 * most: where looks take long, they are rarer.
 */
void cw_job_numbers_tick(struct cw_job_numbers *n, int64_t now_ns);

struct cw_job_numbers_stats {
	uint64_t nonfinite_total; /* jobs, once each */
	uint64_t headroom_total;
};
void cw_job_numbers_stats(const struct cw_job_numbers *n, struct cw_job_numbers_stats *ret);

/* Each process that lives and is of a job, with summaries or without. since_ns: wall time, > 0. */
typedef void (*cw_job_numbers_living_fn)(const struct cw_job_id *job, int64_t since_ns, void *user);
void cw_job_numbers_each_living(const struct cw_job_numbers *n, cw_job_numbers_living_fn fn,
				void *user);

/* What was told of each job; borrowed until it returns. */
typedef void (*cw_job_numbers_fn)(const struct cw_job_id *job, const struct cw_numbers *numbers,
				  void *user);
void cw_job_numbers_each(const struct cw_job_numbers *n, cw_job_numbers_fn fn, void *user);
