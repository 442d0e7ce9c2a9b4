/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by leader.c (routes, messages), leader_look.c (jobs and looks at them) and
 * leader_windows.c. */
#pragma once

#include "common/htable.h"
#include "leader/leader.h"

struct cw_uid_count;
struct cw_untracked;

struct cw_led_route {
	UT_hash_handle hh;
	struct cw_route route; /* in the table by its job */
	struct cw_process_map processes;
	struct cw_job *jobs;
	/* Its ranks by component, as of a shape of the route; NULL = none yet. */
	struct cw_rank_ref *refs;
	unsigned n_refs;
	uint64_t refs_shape;
	bool is_led;              /* else only kept, in case its leader is lost */
	int64_t since_ns;         /* when it got its place */
	uint64_t pass;            /* over its jobs; those with this number were looked at */
	bool is_partly_looked_at; /* others wait for another turn of the loop */
	int64_t next_ns;
	int64_t looked_ns;     /* when it was looked at last */
	int64_t not_before_ns; /* its user has had its share until then */
};

/* Who announced an incident of which job; remembered for CW_LEADER_ANNOUNCED_NS. */
struct cw_announced {
	struct cw_job_id job;
	int64_t at_ns; /* awake; 0 = unused */
	char node[64];
	bool led_here; /* this node reported to it then */
};

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

struct cw_leader {
	struct cw_leader_config config;
	struct cw_led_route *routes;
	struct cw_uid_count *held; /* routes of each user */
	struct cw_untracked *untracked;
	int64_t untracked_ns; /* when that was gone through last */
	/* Memory of the last look's snapshot, for the next one's; NULL = none. One for all jobs: as
	 * many as there are jobs could be more than the machine has. */
	struct cw_snapshot *spare;
	struct cw_half_look half;
	uint64_t turn_members; /* looked at in this turn of the loop */
	/* CPU time of looks and text since then: beyond CW_LEADER_TEXT_NS no more text is made. */
	int64_t spent_ns, spent_since_ns;
	/* How long this daemon was held up so far, and when it went on, on the awake clock. */
	int64_t held_ns, woke_ns;
	bool has_put_off;
	uint64_t next_job;
	struct cw_announced announced[CW_LEADER_MAX_ANNOUNCED];
	unsigned next_announced;
	struct cw_leader_stats stats;
};

static inline uint32_t cw_leader_turn_members(const struct cw_leader *l)
{
	return l->config.turn_members ? l->config.turn_members : CW_LEADER_TURN_MEMBERS;
}

/* Looks at all jobs of the route; ends those that are gone. */
void cw_leader_look(struct cw_leader *l, struct cw_led_route *lr, int64_t now_ns);
/* Goes on with what cw_leader_look() left for another turn of the loop, if it did. */
void cw_leader_finish_look(struct cw_leader *l);
/* Asks the nodes for windows that the verdict wants; at most once a second for a job. */
void cw_leader_request_windows(struct cw_leader *l, struct cw_led_route *lr, struct cw_job *job,
			       const struct cw_snapshot *snap, const struct cw_verdict *v);
/* was_led_here: false when another node took over; then nothing is said about an end. */
void cw_leader_end_job(struct cw_leader *l, struct cw_led_route *lr, struct cw_job *job,
		       bool was_led_here);
