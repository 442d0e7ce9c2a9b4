/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader side of a daemon. A leader collects digests of the job keys that elected this node,
 * and splits the ranks of each job key into jobs. It evaluates every job at least once a second, or
 * at once after a death or when windows arrive. Each verdict drives the job's incidents.
 *
 * A node leads a job key as soon as another node regards it as the leader and sends it digests. If
 * it gets copies of digests, it only stores them. It begins to use them when the other nodes lose
 * their leader and elect this node. A leader may lose sight of more than half of the nodes that it
 * once knew for a job key. It then only reports that it is cut off.
 *
 * Loop thread only; blocks only where its effects do.
 */
#pragma once

#include <stdint.h>

#include "common/clock.h"
#include "leader/election.h"
#include "leader/incident/incident.h"
#include "leader/incident/leader_effects.h"
#include "leader/job.h"
#include "model/snapshot.h"

struct cw_leader;
struct cw_untracked;

/*
 * Most job keys that this node leads or stores as copies at once. Users share the limit
 * (identity/quota.h). A job with an open incident is never displaced.
 */
#define CW_LEADER_MAX_JOB_KEYS 1024u
/* If no digest of an untracked job key has arrived for this long, we forget the job key. */
#define CW_LEADER_UNTRACKED_KEEP_NS (10 * CW_NS_PER_S)
#define CW_LEADER_MAX_JOBS_PER_JOB_KEY 256u
/*
 * An answer to a digest names at most this many nodes. Otherwise the cost would grow with the
 * square of their number.
 */
#define CW_LEADER_MAX_NAMED CW_ELECTION_MAX_NAMES
#define CW_LEADER_EVALUATE_EVERY_NS CW_NS_PER_S
/*
 * Evaluations of one user's jobs take at most 1/4 of a core. Otherwise a user with a thousand
 * communicators of a thousand ranks, true or invented, could delay the alerts of others. Cheap
 * evaluations do not count.
 */
#define CW_LEADER_EVALUATION_SHARE 4
#define CW_LEADER_CHEAP_EVALUATION_NS (5 * CW_NS_PER_MS)
/*
 * Most memberships that we evaluate in one iteration of the loop. We split a larger evaluation: one
 * iteration builds the snapshot and the next judges it. Other work then never waits for both.
 */
#define CW_LEADER_ITERATION_MEMBERS 65536u
/*
 * After the leader of a job is lost, we read the copies of at most this many nodes in one
 * iteration. An evaluation waits for all of them.
 */
#define CW_LEADER_ITERATION_COPIES 128u
/*
 * CPU time budget for the text of an incident's snapshot, per CW_LEADER_TEXT_EVERY_NS. Evaluations
 * count against the same budget, which is a quarter of the period. The daemon needs the rest to
 * store digests of the same moment. A due alert does not wait for the budget.
 */
#define CW_LEADER_TEXT_NS (CW_LEADER_TEXT_EVERY_NS / CW_LEADER_EVALUATION_SHARE)
#define CW_LEADER_TEXT_EVERY_NS (250 * CW_NS_PER_MS)
/*
 * If ranks have been missing from a communicator's init for this long, we search for them on all
 * nodes. We repeat the search while they stay missing, because nodes forget their findings after
 * CW_UNREGISTERED_RANKS_KEEP_NS.
 */
#define CW_LEADER_SEARCH_AFTER_NS (10 * CW_NS_PER_S)
#define CW_LEADER_SEARCH_EVERY_NS (10 * CW_NS_PER_S)
/*
 * Number and lifetime of the announcements that we remember from other nodes; see
 * take_announcement().
 */
#define CW_LEADER_MAX_ANNOUNCED 64u
#define CW_LEADER_ANNOUNCED_NS (600 * CW_NS_PER_S)
/*
 * When a node has announced an incident, it sends its alert within this time. The time is less than
 * CW_INCIDENT_RETRY_NS, so a deferred leader may speak when it asks again.
 */
#define CW_LEADER_SPEAKS_NS (20 * CW_NS_PER_S)
/*
 * An unreachable leader has this long to return. Only then does its stand-in send an alert that
 * both may know of. It is the same time that we wait for a silent leader.
 */
#define CW_LEADER_RETURNS_NS CW_LEADER_SILENT_NS

struct cw_leader_config {
	const struct cw_clock *clock;
	const char *self; /* this node */
	bool finds_peers; /* peers come and go, so zero peers may mean that there are none yet */
	const struct cw_leader_effects *effects;
	struct cw_election *members;
	struct cw_thresholds thresholds;
	int64_t (*cpu_ns)(void *user); /* CPU time used so far; NULL = evaluations count as free */
	void *cpu_user;
	uint32_t iteration_members; /* 0 = CW_LEADER_ITERATION_MEMBERS */
};

/* Borrows all of the configuration. Returns 0 or -ENOMEM. */
int cw_leader_new(const struct cw_leader_config *config, struct cw_leader **ret);
/* Takes NULL; returns NULL. Open incidents stay open in their bundles. */
struct cw_leader *cw_leader_free(struct cw_leader *l);

/* Handles digests, announcements and objections. Returns true if the message was one of these. */
bool cw_leader_message(struct cw_leader *l, const char *from, struct cw_message **msg);
/*
 * Evaluates all job keys that are due. Call this at least every 250 ms. If it returns true, some
 * work is deferred. The caller must then call cw_leader_continue() in the next iteration of the
 * loop.
 */
bool cw_leader_tick(struct cw_leader *l);
/* Continues deferred work, if there is any. Returns the same as cw_leader_tick(). */
bool cw_leader_continue(struct cw_leader *l);
void cw_leader_set_thresholds(struct cw_leader *l, const struct cw_thresholds *thresholds);
/* True if this node has an open incident with this id for this user. */
bool cw_leader_has_open(const struct cw_leader *l, uint32_t uid, const char *id);
/*
 * True if, as far as this node knows, the other node leads the job or has ranks of it. This node
 * learns it from the other node's digests or from the job's leader.
 */
bool cw_leader_has_part(const struct cw_leader *l, const struct cw_job_id *job, const char *node);
/*
 * Decides about a claim of a node that it delivered an alert of this job. True if we do not believe
 * the claim. We then count and ignore it. If this node leads the job, we believe only a node that
 * would lead in our place, but any node may still object. If this node does not lead the job, we
 * believe a node that has ranks of it, or would lead it before this node. In both cases, we ignore
 * a claim if the id belongs to another job, or if no job has such a label.
 */
bool cw_leader_is_unconfirmed(struct cw_leader *l, const char *from, uint32_t uid,
			      const char *label, const char *id);
/* Call this when the alert with this id was delivered, or when delivery failed. */
void cw_leader_posted(struct cw_leader *l, uint32_t uid, const char *id, bool was_delivered);
/*
 * Resends each alert that may not have been delivered because the node that had to deliver it is
 * gone.
 */
void cw_leader_retry_alerts(struct cw_leader *l);

/* Callback for each job, for the status. Its arguments are borrowed until it returns. */
typedef void (*cw_leader_job_fn)(const struct cw_job_digests *digests, const struct cw_job *job,
				 void *user);
void cw_leader_jobs(const struct cw_leader *l, cw_leader_job_fn fn, void *user);

/*
 * Builds a snapshot of one of these jobs as it is now, without windows. Returns 0 or -errno. On
 * success, the caller owns *ret. -ENOENT: the job has no ranks left.
 */
int cw_leader_snapshot(struct cw_leader *l, const struct cw_job_digests *digests,
		       struct cw_job *job, struct cw_snapshot **ret);

/*
 * Returns the jobs that this node should lead but cannot, because it has reached its limit.
 * Borrowed.
 */
const struct cw_untracked *cw_leader_untracked(const struct cw_leader *l);

struct cw_leader_stats {
	uint64_t split_evaluations; /* evaluations that took two iterations of the loop */
	/*
	 * Numbers of refusals at a limit. We count jobs and communicators again at each evaluation.
	 * windows_over_limit counts windows of ops.
	 */
	uint64_t refused_jobs, comms_over_limit, windows_over_limit;
	uint64_t displaced; /* job keys that another user's job key displaced */
	uint64_t evaluations, refused_digests, window_requests, announcements, objections, searches;
	uint64_t overruled;    /* objections ignored because the node had objected often enough */
	uint64_t unconfirmed;  /* claims of delivery from nodes that can have no part in the job */
	uint64_t late_notices; /* notices of late ranks in jobs that do not hang */
	uint64_t unnamed;      /* refused announcements that did not name their job */
	uint32_t job_keys, jobs;
	uint32_t untracked; /* job keys that are over the limit now */
};
void cw_leader_stats(const struct cw_leader *l, struct cw_leader_stats *ret);
