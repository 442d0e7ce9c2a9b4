/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader side of a daemon. A leader collects the digests of job keys for which the nodes
 * elected it, and splits the ranks of each job key into jobs. It evaluates every job at least once
 * a second, and at once after a death or when windows arrive. Each verdict drives the job's
 * incidents.
 *
 * A node leads a job key as soon as another node regards it as the leader and sends it digests. If
 * a node gets copies of digests, it only stores them. It begins to use them when the other nodes
 * lose their leader and elect this node. A leader may lose contact to more than half of the nodes
 * that it once knew for a job key. Then it only reports that it is cut off.
 *
 * Loop thread only; blocks only where its effects block.
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
 * The maximum number of job keys that this node leads or stores as copies. Users share the limit
 * (identity/quota.h). No other job displaces a job with an open incident.
 */
#define CW_LEADER_MAX_JOB_KEYS 1024u
/* We forget an untracked job key that has had no digest for this long. */
#define CW_LEADER_UNTRACKED_KEEP_NS (10 * CW_NS_PER_S)
#define CW_LEADER_MAX_JOBS_PER_JOB_KEY 256u
/*
 * The maximum number of nodes that an answer to a digest names. Without it the cost would grow with
 * the square of the number of nodes.
 */
#define CW_LEADER_MAX_NAMED CW_ELECTION_MAX_NAMES
#define CW_LEADER_EVALUATE_EVERY_NS CW_NS_PER_S
/*
 * Evaluations of one user's jobs take at most 1/4 of a core. Without this limit a user with a
 * thousand communicators of a thousand ranks, true or invented, could delay the alerts of others.
 * Evaluations below CW_LEADER_CHEAP_EVALUATION_NS do not count.
 */
#define CW_LEADER_EVALUATION_SHARE 4
#define CW_LEADER_CHEAP_EVALUATION_NS (5 * CW_NS_PER_MS)
/*
 * The maximum number of memberships that we evaluate in one iteration of the loop. We split a
 * larger evaluation: one iteration builds the snapshot, and the next judges it. Other work then
 * waits for one of these steps only.
 */
#define CW_LEADER_ITERATION_MEMBERS 65536u
/*
 * After the leader of a job is lost, one iteration reads the copies of at most this many nodes. An
 * evaluation waits until all copies are read.
 */
#define CW_LEADER_ITERATION_COPIES 128u
/*
 * The CPU time budget for the text of an incident's snapshot, per CW_LEADER_TEXT_EVERY_NS.
 * Evaluations use the same budget, which is a quarter of the period. The daemon needs the rest to
 * store the digests that arrive meanwhile. An alert that is due does not wait for the budget.
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
 * The number and lifetime of the announcements of other nodes that we remember
 * (take_announcement()).
 */
#define CW_LEADER_MAX_ANNOUNCED 64u
#define CW_LEADER_ANNOUNCED_NS (600 * CW_NS_PER_S)
/*
 * A node that has announced an incident sends its alert within this time. The time is less than
 * CW_INCIDENT_RETRY_NS. So a leader to which we objected may speak when it announces again.
 */
#define CW_LEADER_SPEAKS_NS (20 * CW_NS_PER_S)
/*
 * How long we wait for an unreachable leader to return. Only after that does its stand-in send an
 * alert that both may know of. We wait as long for a silent leader.
 */
#define CW_LEADER_RETURNS_NS CW_LEADER_SILENT_NS

struct cw_leader_config {
	const struct cw_clock *clock;
	const char *self; /* this node */
	/* Peers come and go, so zero peers may mean that we have not found one yet. */
	bool finds_peers;
	const struct cw_leader_effects *effects;
	struct cw_election *members;
	struct cw_thresholds thresholds;
	int64_t (*cpu_ns)(void *user); /* CPU time used so far; NULL = evaluations cost nothing */
	void *cpu_user;
	uint32_t iteration_members; /* 0 = CW_LEADER_ITERATION_MEMBERS */
};

/* Makes a leader without jobs. Borrows the whole configuration. Returns 0 or -ENOMEM. */
int cw_leader_new(const struct cw_leader_config *config, struct cw_leader **ret);
/* Frees the leader, which may be NULL. Open incidents stay open in their bundles. Returns NULL. */
struct cw_leader *cw_leader_free(struct cw_leader *l);

/* Handles digests, announcements and objections. Returns true if the message was one of these. */
bool cw_leader_message(struct cw_leader *l, const char *from, struct cw_message **msg);
/*
 * Evaluates all job keys that are due. The caller runs this at least every 250 ms. If it returns
 * true, some work is deferred. The caller must then run cw_leader_continue() in the next iteration
 * of the loop.
 */
bool cw_leader_tick(struct cw_leader *l);
/*
 * Continues deferred work, if there is any. Returns true if some work is still deferred, like
 * cw_leader_tick().
 */
bool cw_leader_continue(struct cw_leader *l);
void cw_leader_set_thresholds(struct cw_leader *l, const struct cw_thresholds *thresholds);
/* True if this node has an open incident with this id for this user. */
bool cw_leader_has_open(const struct cw_leader *l, uint32_t uid, const char *id);
/*
 * True if, as far as this node knows, the other node leads the job or has ranks of it. This node
 * learns that from the other node's digests, or from the job's leader.
 */
bool cw_leader_has_part(const struct cw_leader *l, const struct cw_job_id *job, const char *node);
/*
 * Decides about a claim of node `from` that it delivered an alert of this job. Returns true if we
 * do not believe the claim; we then count it and ignore it.
 *
 * If this node leads the job, we believe only a node that would lead in its place. Any node may
 * still object. If this node does not lead the job, we believe a node that has ranks of it, or
 * would lead it before this node. In both cases, we ignore a claim if its id belongs to another
 * job, or if no job has its label.
 */
bool cw_leader_is_unconfirmed(struct cw_leader *l, const char *from, uint32_t uid,
			      const char *label, const char *id);
/* The caller runs this when the alert with this id was delivered, or when delivery failed. */
void cw_leader_posted(struct cw_leader *l, uint32_t uid, const char *id, bool was_delivered);
/*
 * Sends each alert again that may not have been delivered, because the node that had to deliver it
 * is gone.
 */
void cw_leader_retry_alerts(struct cw_leader *l);

/* A callback for each job, for the status. It borrows its arguments until it returns. */
typedef void (*cw_leader_job_fn)(const struct cw_job_digests *digests, const struct cw_job *job,
				 void *user);
void cw_leader_jobs(const struct cw_leader *l, cw_leader_job_fn fn, void *user);

/*
 * Builds a snapshot of the job as it is now, without windows. The job is one that cw_leader_jobs()
 * listed. On success the caller owns *ret. Returns 0 or -errno; -ENOENT: the job has no ranks left.
 */
int cw_leader_snapshot(struct cw_leader *l, const struct cw_job_digests *digests,
		       struct cw_job *job, struct cw_snapshot **ret);

/* Returns the jobs that this node should lead but cannot, because it is at its limit. Borrowed. */
const struct cw_untracked *cw_leader_untracked(const struct cw_leader *l);

struct cw_leader_stats {
	uint64_t split_evaluations; /* evaluations that took two iterations of the loop */
	/*
	 * Numbers of refusals at a limit. Each evaluation counts jobs and communicators again.
	 * windows_over_limit counts windows of ops.
	 */
	uint64_t refused_jobs, comms_over_limit, windows_over_limit;
	uint64_t displaced; /* job keys that the job key of another user displaced */
	uint64_t evaluations, refused_digests, window_requests, announcements, objections, searches;
	/* Objections that we ignored because their node had objected often enough. */
	uint64_t overruled;
	uint64_t unconfirmed;  /* claims of delivery from nodes that can have no part in the job */
	uint64_t late_notices; /* notices of late ranks in jobs that do not hang */
	uint64_t unnamed;      /* refused announcements that named no job */
	uint32_t job_keys, jobs;
	uint32_t untracked;         /* job keys that are over the limit now */
	uint64_t untracked_dropped; /* cw_untracked_dropped() */
};
void cw_leader_stats(const struct cw_leader *l, struct cw_leader_stats *ret);
