/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates each job of a job key that this node leads: snapshot, verdict, patience, incidents. It
 * also starts and ends jobs when the communicators of their ranks come and go.
 *
 * We split the evaluation of a large job. One iteration of the loop builds the snapshot, and the
 * next judges it. Writing the snapshot's text for an incident takes as many iterations as it needs.
 * Only one large job has a snapshot at a time, and the others wait.
 *
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "leader/leader.h"
#include "leader/leader_entry.h"

/*
 * An evaluation whose snapshot is complete, but which still needs its judgement, or its text for an
 * incident. Later digests do not affect the snapshot.
 */
struct cw_pending_evaluation {
	struct cw_snapshot *snap; /* NULL = none */
	bool is_judged;
	struct cw_leader_entry *entry;
	struct cw_job *job;
	uint64_t n_members;
};

/* State shared by the evaluations of all jobs. It is part of the leader. */
struct cw_job_evaluations {
	const struct cw_leader_config *config;
	struct cw_leader_stats *stats;
	/*
	 * The memory of the last snapshot, which the next snapshot reuses; NULL = none. All jobs
	 * share it, because a spare for each job could exceed the machine's memory.
	 */
	struct cw_snapshot *spare;
	struct cw_pending_evaluation pending;
	uint64_t iteration_members; /* memberships evaluated in this iteration of the loop */
	int64_t held_ns;            /* how long this daemon has been held up so far, in total */
	bool has_deferred;
	uint64_t next_job;
};

static inline uint32_t cw_job_evaluation_iteration_members(const struct cw_job_evaluations *all)
{
	return all->config->iteration_members ? all->config->iteration_members
					      : CW_LEADER_ITERATION_MEMBERS;
}

/* Evaluates all jobs of the entry, and ends jobs without ranks. */
void cw_job_evaluation_run(struct cw_job_evaluations *all, struct cw_leader_entry *entry,
			   int64_t now_ns);
/* Continues the pending evaluation, if there is one. */
void cw_job_evaluation_finish(struct cw_job_evaluations *all);
/* Ends a job. was_led_here: false if another node took over. We then report no end. */
void cw_job_evaluation_end_job(struct cw_job_evaluations *all, struct cw_leader_entry *entry,
			       struct cw_job *job, bool was_led_here);
