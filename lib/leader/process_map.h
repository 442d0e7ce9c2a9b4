/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps each process of a job key to its job. We compute components afresh from every set of
 * digests. The map shows which job a component had before. Loop thread only.
 */
#pragma once

#include <stdint.h>

#include "leader/job_digests.h"

struct cw_process_map_entry;

struct cw_process_map { /* all zeros = empty */
	struct cw_process_map_entry *entries;
};

/* Returns the number of the process's job; 0 = the process has no job yet. */
uint64_t cw_process_map_job(const struct cw_process_map *map, const struct cw_job_digests *digests,
			    const struct cw_rank_ref *ref);
/* Sets the job of the process. Returns 0 or -ENOMEM. */
int cw_process_map_set_job(struct cw_process_map *map, const struct cw_job_digests *digests,
			   const struct cw_rank_ref *ref, uint64_t job);
/* Forgets the entries that were not set since the last sweep. */
void cw_process_map_sweep(struct cw_process_map *map);
void cw_process_map_fini(struct cw_process_map *map);
