/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the tensor summaries of jobs for the ranks on this node: it gives their records to the
 * extension (digest/extension.h), and logs findings to the journal. It sends no alert: only the
 * users of a job know which numbers are normal for it
 * (docs/design/summaries.md#while-the-job-runs).
 *
 * Loop thread only; reads memory, does not block.
 */
#pragma once

#include <stdint.h>

#include "digest/extension.h"
#include "identity/job_id.h"

struct cw_job_tensor_stats;
struct cw_reading_budget;
struct cw_process;

/*
 * Limit of ranks per job that we read. A machine has fewer GPUs, and a user with thousands of
 * processes must not hold up the loop. The other ranks of a larger job count as another node's.
 */
#define CW_JOB_TENSOR_STATS_RANKS 64u
/*
 * Lists the job's processes that summarise tensors, at most CW_JOB_TENSOR_STATS_RANKS. Living
 * processes come first. Then come dead ones, unless a living process, with summaries or without,
 * has taken over their rank. The pointers are borrowed until the next iteration of the loop.
 * *ret_living is the number of living processes in the list. *ret_over_limit, unless NULL, is the
 * number of processes that did not fit.
 */
uint32_t
cw_job_tensor_stats_processes(const struct cw_job_tensor_stats *stats, const struct cw_job_id *job,
			      const struct cw_process *ret[static CW_JOB_TENSOR_STATS_RANKS],
			      uint32_t *ret_living, uint32_t *ret_over_limit);

/* Minimum time between two readings of one job. */
#define CW_JOB_TENSOR_STATS_NS INT64_C(1000000000)

/* table: the node's processes. All are borrowed. 0 or -ENOMEM. */
int cw_job_tensor_stats_new(const struct cw_extension *extension, struct cw_process **table,
			    struct cw_reading_budget *budget, struct cw_job_tensor_stats **ret);
/* Takes NULL; returns NULL. */
struct cw_job_tensor_stats *cw_job_tensor_stats_free(struct cw_job_tensor_stats *stats);

/*
 * Reads at most one job: of those that are due, the one that has waited longest. Reading one job
 * costs at most 1 % of a core; if a reading takes long, the next one comes later.
 */
void cw_job_tensor_stats_tick(struct cw_job_tensor_stats *stats, int64_t now_ns);

/* The number of findings so far, by kind. */
void cw_job_tensor_stats_totals(const struct cw_job_tensor_stats *stats,
				uint64_t ret[static CW_EXTENSION_KINDS]);

/*
 * Calls fn for each living process that has a job, with summaries or without. since_ns: wall time,
 * > 0.
 */
typedef void (*cw_job_tensor_stats_living_fn)(const struct cw_job_id *job, int64_t since_ns,
					      void *user);
void cw_job_tensor_stats_each_living(const struct cw_job_tensor_stats *stats,
				     cw_job_tensor_stats_living_fn fn, void *user);

/* Calls fn for each job that has summaries on this node. */
typedef void (*cw_job_tensor_stats_fn)(const struct cw_job_id *job, void *user);
void cw_job_tensor_stats_each(const struct cw_job_tensor_stats *stats, cw_job_tensor_stats_fn fn,
			      void *user);

/* Calls fn for each last finding of each kind. It is borrowed until fn returns. */
typedef void (*cw_job_tensor_stats_finding_fn)(const struct cw_job_id *job,
					       const struct cw_extension_kind *kind,
					       const struct cw_extension_finding *finding,
					       void *user);
void cw_job_tensor_stats_each_finding(const struct cw_job_tensor_stats *stats,
				      cw_job_tensor_stats_finding_fn fn, void *user);
