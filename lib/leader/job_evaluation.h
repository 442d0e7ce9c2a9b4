/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates each job of a job key that this node leads: snapshot, verdict, patience, incidents.
 * This file also starts and ends jobs when their ranks' communicators come and go.
 *
 * We split the evaluation of a large job. One iteration of the loop builds the snapshot and the
 * next judges it. The snapshot's text for an incident takes as many iterations as it needs. Only
 * one large job has a snapshot at a time; the others wait.
 *
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "leader/leader.h"
#include "leader/leader_entry.h"

/*
 * An evaluation that has a finished snapshot, but still needs its judgement or its text for an
 * incident. Later digests do not affect it.
 */
struct cw_pending_evaluation {
	struct cw_snapshot *snap; /* NULL = none */
	bool is_judged;
	struct cw_leader_entry *entry;
	struct cw_job *job;
	uint64_t n_members;
};

/* State shared by the evaluations of all jobs; part of the leader. */
struct cw_job_evaluations {
	const struct cw_leader_config *config;
	struct cw_leader_stats *stats;
	/*
	 * Memory of the last snapshot, which the next one reuses; NULL = none. All jobs share it,
	 * because one for each job could exceed the machine's memory.
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

/* Evaluates all jobs of the entry and ends those without ranks. */
void cw_job_evaluation_run(struct cw_job_evaluations *all, struct cw_leader_entry *entry,
			   int64_t now_ns);
/* Continues the pending evaluation, if there is one. */
void cw_job_evaluation_finish(struct cw_job_evaluations *all);
/* was_led_here: false if another node took over. We then do not report an end. */
void cw_job_evaluation_end_job(struct cw_job_evaluations *all, struct cw_leader_entry *entry,
			       struct cw_job *job, bool was_led_here);
