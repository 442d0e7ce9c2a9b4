/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates each job of a route that this node leads: snapshot, verdict, patience, incidents. This
 * file also starts and ends jobs, as their ranks' communicators come and go.
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
#include "leader/led_route.h"

/*
 * An evaluation with a finished snapshot whose judgement, or text for an incident, is still
 * pending. Later digests do not affect it.
 */
struct cw_half_look {
	struct cw_snapshot *snap; /* NULL = no pending evaluation */
	bool is_judged;
	struct cw_led_route *lr;
	struct cw_job *job;
	uint64_t n_members;
};

/* State shared by the evaluations of all jobs; part of the leader. */
struct cw_job_looks {
	const struct cw_leader_config *config;
	struct cw_leader_stats *stats;
	/*
	 * Memory of the last snapshot, which the next one reuses; NULL = none. All jobs share one:
	 * one for each job could exceed the machine's memory.
	 */
	struct cw_snapshot *spare;
	struct cw_half_look half;
	uint64_t turn_members; /* evaluated in this iteration of the loop */
	int64_t held_ns;       /* how long this daemon has been held up so far */
	bool has_deferred;
	uint64_t next_job;
};

static inline uint32_t cw_job_look_turn_members(const struct cw_job_looks *l)
{
	return l->config->turn_members ? l->config->turn_members : CW_LEADER_TURN_MEMBERS;
}

/* Evaluates all jobs of the route and ends those without ranks. */
void cw_job_look(struct cw_job_looks *l, struct cw_led_route *lr, int64_t now_ns);
/* Continues the evaluation that cw_job_look() left for another iteration, if there is one. */
void cw_job_look_finish(struct cw_job_looks *l);
/* was_led_here: false when another node took over; then we do not report an end. */
void cw_job_look_end(struct cw_job_looks *l, struct cw_led_route *lr, struct cw_job *job,
		     bool was_led_here);
