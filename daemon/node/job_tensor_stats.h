/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the tensor summaries of the ranks on this node. Passes their records to the extension
 * (digest/extension.h), and logs its findings. Sends no alerts, because only the users of a job
 * know which values are normal for it (docs/design/summaries.md#while-the-job-runs).
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
 * Maximum number of ranks of a job that we read. A machine has fewer GPUs. A user with thousands of
 * processes must not hold up the loop. Further ranks of the job count like ranks of another node.
 */
#define CW_JOB_TENSOR_STATS_RANKS 64u
/*
 * Lists the job's processes that make tensor summaries, at most CW_JOB_TENSOR_STATS_RANKS. Living
 * processes come first. Then come dead ones, unless a living process has the same rank. The
 * pointers are borrowed until the next iteration of the loop. *ret_living: the number of living
 * processes in the list. *ret_over_limit: the number of processes that did not fit; ret_over_limit
 * may be NULL.
 */
uint32_t
cw_job_tensor_stats_processes(const struct cw_job_tensor_stats *stats, const struct cw_job_id *job,
			      const struct cw_process *ret[static CW_JOB_TENSOR_STATS_RANKS],
			      uint32_t *ret_living, uint32_t *ret_over_limit);

/* Shortest time between two readings of one job. */
#define CW_JOB_TENSOR_STATS_NS INT64_C(1000000000)

/* Borrows all arguments. table: the node's processes. Returns 0 or -ENOMEM. */
int cw_job_tensor_stats_new(const struct cw_extension *extension, struct cw_process **table,
			    struct cw_reading_budget *budget, struct cw_job_tensor_stats **ret);
/* Takes NULL; returns NULL. */
struct cw_job_tensor_stats *cw_job_tensor_stats_free(struct cw_job_tensor_stats *stats);

/*
 * Reads at most one job. Among the jobs whose time has come, it chooses the one that has waited
 * longest. Reading a job costs at most 1 % of a core: after a long reading, the next one comes
 * later.
 */
void cw_job_tensor_stats_tick(struct cw_job_tensor_stats *stats, int64_t now_ns);

/* Returns the number of findings since the start, by kind. */
void cw_job_tensor_stats_totals(const struct cw_job_tensor_stats *stats,
				uint64_t ret[static CW_EXTENSION_KINDS]);

/*
 * Calls fn for each living process that has a job, with or without summaries. since_ns: wall time
 * at which its record was made, > 0.
 */
typedef void (*cw_job_tensor_stats_living_fn)(const struct cw_job_id *job, int64_t since_ns,
					      void *user);
void cw_job_tensor_stats_each_living(const struct cw_job_tensor_stats *stats,
				     cw_job_tensor_stats_living_fn fn, void *user);

/* Calls fn for each job that has summaries on this node. */
typedef void (*cw_job_tensor_stats_fn)(const struct cw_job_id *job, void *user);
void cw_job_tensor_stats_each(const struct cw_job_tensor_stats *stats, cw_job_tensor_stats_fn fn,
			      void *user);

/*
 * Calls fn for the last finding of each kind of each job. The finding is borrowed until fn returns.
 */
typedef void (*cw_job_tensor_stats_finding_fn)(const struct cw_job_id *job,
					       const struct cw_extension_kind *kind,
					       const struct cw_extension_finding *finding,
					       void *user);
void cw_job_tensor_stats_each_finding(const struct cw_job_tensor_stats *stats,
				      cw_job_tensor_stats_finding_fn fn, void *user);
