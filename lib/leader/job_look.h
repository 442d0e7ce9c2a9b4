/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at each job of a route that is led: snapshot, verdict, patience, incidents. Jobs begin
 * and end here, as their ranks' communicators do.
 *
 * A look at a large job is parted: its snapshot is made in one turn of the loop and judged in the
 * next, and the text of it for an incident is made in as many as it takes. Only one large job has a
 * snapshot at a time; the others wait.
 *
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "leader/leader.h"
#include "leader/led_route.h"

/*
 * A look of which the snapshot is made, and the judgement, or the text of it for an incident, is
 * not: digests that come do not tear it.
 */
struct cw_half_look {
	struct cw_snapshot *snap; /* NULL = there is none */
	bool is_judged;
	struct cw_led_route *lr;
	struct cw_job *job;
	uint64_t n_members;
};

/* What the looks at all jobs share; part of the leader. */
struct cw_job_looks {
	const struct cw_leader_config *config;
	struct cw_leader_stats *stats;
	/* Memory of the last look's snapshot, for the next one's; NULL = none. One for all jobs: as
	 * many as there are jobs could be more than the machine has. */
	struct cw_snapshot *spare;
	struct cw_half_look half;
	uint64_t turn_members; /* looked at in this turn of the loop */
	int64_t held_ns;       /* how long this daemon was held up so far */
	bool has_deferred;
	uint64_t next_job;
};

static inline uint32_t cw_job_look_turn_members(const struct cw_job_looks *l)
{
	return l->config->turn_members ? l->config->turn_members : CW_LEADER_TURN_MEMBERS;
}

/* Looks at all jobs of the route; ends those that are gone. */
void cw_job_look(struct cw_job_looks *l, struct cw_led_route *lr, int64_t now_ns);
/* Goes on with what cw_job_look() left for another turn of the loop, if it did. */
void cw_job_look_finish(struct cw_job_looks *l);
/* was_led_here: false when another node took over; then nothing is said about an end. */
void cw_job_look_end(struct cw_job_looks *l, struct cw_led_route *lr, struct cw_job *job,
		     bool was_led_here);
