/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader's state for one job id: the digests, its jobs, and the schedule of their evaluations.
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "leader/job.h"
#include "leader/job_digests.h"
#include "leader/process_map.h"

struct cw_leader_entry {
	UT_hash_handle hh;
	struct cw_job_digests digests; /* hashed by its job id */
	struct cw_process_map processes;
	struct cw_job *jobs;
	struct cw_postmortems postmortems; /* post-mortems of jobs that ended */
	/* The ranks sorted by component, valid for refs_shape; NULL = not computed yet. */
	struct cw_rank_ref *refs;
	unsigned n_refs;
	uint64_t refs_shape;
	bool is_led; /* false = we only store copies, in case the leader is lost */
	/* A node that is now unreachable announced an incident of this job. */
	bool was_announced_by_lost_peer;
	int64_t since_ns; /* time when we admitted the entry */
	/* Number of the current pass over the jobs; a job with this number is already evaluated. */
	uint64_t pass;
	bool is_partly_evaluated; /* some jobs wait for another iteration of the loop */
	int64_t next_ns;
	int64_t evaluated_ns;  /* time of the last evaluation */
	int64_t not_before_ns; /* until then the user's share of CPU time is used up */
};
