/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader's side of a daemon: takes digests of the routes this node was chosen for, splits them
 * into jobs, looks at each job at least once a second (at once after a death or when windows came)
 * and drives its incident. It leads whatever it is sent as a leader; copies it only keeps, until
 * their nodes come to it because their leader is lost. A leader that hears less than half of the
 * nodes it once knew for a route says only that it is cut off.
 *
 * Loop thread only; never blocks beyond what its effects do.
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
 * Routes led, or kept as copies, at once. Users share them (identity/shares.h); a job with an open
 * incident keeps its place.
 */
#define CW_LEADER_MAX_ROUTES 1024u
/* A route that has no place, and of which no digest comes any more, is forgotten. */
#define CW_LEADER_UNTRACKED_KEEP_NS (10 * CW_NS_PER_S)
#define CW_LEADER_MAX_JOBS_PER_ROUTE 256u
/* An answer to a digest names the nodes up to so many: all names to all nodes are a square. */
#define CW_LEADER_MAX_NAMED CW_ELECTION_MAX_NAMES
#define CW_LEADER_LOOK_NS CW_NS_PER_S
/*
 * Looks at the jobs of one user take at most 1/4 of a core: then a user with a thousand
 * communicators of a thousand ranks, true or invented, does not make the alerts of others late.
 * Looks that are cheap do not count.
 */
#define CW_LEADER_LOOK_SHARE 4
#define CW_LEADER_CHEAP_LOOK_NS (5 * CW_NS_PER_MS)
/*
 * Memberships looked at in one turn of the loop. A look at more is parted: its snapshot is made in
 * one turn and judged in the next, so that nothing else waits for both.
 */
#define CW_LEADER_TURN_MEMBERS 65536u
/* Nodes whose copies are read in one turn, when their leader is lost. A look waits for all of them.
 */
#define CW_LEADER_TURN_COPIES 128u
/*
 * The text of an incident's snapshot may take so much CPU time in so much time, together with
 * looks, a quarter as these: digests of the same moment are to be kept, too. An alert that is due
 * does not wait for it.
 */
#define CW_LEADER_TEXT_NS (CW_LEADER_TEXT_EVERY_NS / CW_LEADER_LOOK_SHARE)
#define CW_LEADER_TEXT_EVERY_NS (250 * CW_NS_PER_MS)
/*
 * Ranks that have not come to the making of a communicator for so long are looked for on all nodes,
 * again and again while it lasts: nodes forget what they found after CW_ABSENT_KEEP_NS.
 */
#define CW_LEADER_SEARCH_AFTER_NS (10 * CW_NS_PER_S)
#define CW_LEADER_SEARCH_EVERY_NS (10 * CW_NS_PER_S)
/* Announcements of others that are remembered, and for how long: see take_announcement(). */
#define CW_LEADER_MAX_ANNOUNCED 64u
#define CW_LEADER_ANNOUNCED_NS (600 * CW_NS_PER_S)
/*
 * By then it is told what was announced, whoever is to tell it; less than CW_INCIDENT_RETRY_NS, so
 * that who was put off is let speak when it asks again.
 */
#define CW_LEADER_SPEAKS_NS (20 * CW_NS_PER_S)
/*
 * Whoever would lead and is out of reach has so long to come back before a node that stands in for
 * it tells what both may know. As long as one that is silent is waited for.
 */
#define CW_LEADER_RETURNS_NS CW_LEADER_SILENT_NS

struct cw_leader_config {
	const struct cw_clock *clock;
	const char *self; /* this node */
	bool finds_peers; /* further ones come and go, so that none may mean none yet */
	const struct cw_leader_effects *effects;
	struct cw_election *members;
	struct cw_thresholds thresholds;
	int64_t (*cpu_ns)(void *user); /* CPU time used so far; NULL = looks take none */
	void *cpu_user;
	uint32_t turn_members; /* 0 = CW_LEADER_TURN_MEMBERS */
};

/* All borrowed. 0 or -ENOMEM. */
int cw_leader_new(const struct cw_leader_config *config, struct cw_leader **ret);
/* Takes NULL; returns NULL. Open incidents stay open in their bundles. */
struct cw_leader *cw_leader_free(struct cw_leader *l);

/* Digests, announcements and objections; true when the message was one of them. */
bool cw_leader_message(struct cw_leader *l, const char *from, struct cw_message **msg);
/*
 * Looks at what is due. Call it at least every 250 ms. True: something was put off, to be gone on
 * with in the next turn of the loop.
 */
bool cw_leader_tick(struct cw_leader *l);
/* Goes on with what was put off, if anything was. Returns the same. */
bool cw_leader_continue(struct cw_leader *l);
void cw_leader_set_thresholds(struct cw_leader *l, const struct cw_thresholds *thresholds);
/* An incident of this user that this node has open now. */
bool cw_leader_has_open(const struct cw_leader *l, uint32_t uid, const char *id);
/*
 * The node has ranks of the job or leads it, as far as this node knows: from its digests, or from
 * what the job's leader says.
 */
bool cw_leader_has_part(const struct cw_leader *l, const struct cw_job_id *job, const char *node);
/*
 * A node tells that it has delivered an alert of this job. True, and counted: nothing is settled by
 * its word. Where this node leads the job, because that one would not lead it in its place (it may
 * object); elsewhere, because it neither has ranks of it nor would lead it before this node. And
 * anywhere, where the id is known to be another job's, or nobody has a job of such a label.
 */
bool cw_leader_doubts(struct cw_leader *l, const char *from, uint32_t uid, const char *label,
		      const char *id);
/* The alert of this id was delivered, or could not be. */
void cw_leader_posted(struct cw_leader *l, uint32_t uid, const char *id, bool was_delivered);
/* What nodes of older versions call this incident; "" = it is not one of here. */
const char *cw_leader_old_id(const struct cw_leader *l, uint32_t uid, const char *id);
/* Alerts that nobody is known to have got are sent again: whoever carried them is gone. */
void cw_leader_retry_alerts(struct cw_leader *l);

/* For status. Borrowed until the callback returns. */
typedef void (*cw_leader_job_fn)(const struct cw_route *route, const struct cw_job *job,
				 void *user);
void cw_leader_jobs(const struct cw_leader *l, cw_leader_job_fn fn, void *user);

/*
 * A snapshot of one of these jobs as it is now, without windows. 0 and the caller owns it, or
 * -errno; -ENOENT: nothing of it is left.
 */
int cw_leader_snapshot(struct cw_leader *l, const struct cw_route *route, struct cw_job *job,
		       struct cw_snapshot **ret);

/* Jobs that this node should lead and has no place for. Borrowed. */
const struct cw_untracked *cw_leader_untracked(const struct cw_leader *l);

struct cw_leader_stats {
	uint64_t parted; /* looks that took two turns of the loop */
	/* Beyond a limit: jobs and communicators, again at each look; windows of ops. */
	uint64_t refused_jobs, left_out_comms, left_out_windows;
	uint64_t displaced; /* routes that gave their place to another user's */
	uint64_t looks, refused_digests, window_requests, announcements, objections, searches;
	uint64_t overruled;    /* objections of nodes that had objected often enough */
	uint64_t doubted;      /* deliveries told of by nodes that can have no part in it */
	uint64_t late_notices; /* of ranks that come late, though nobody hangs */
	uint64_t unnamed;      /* announcements that did not say of which job */
	uint32_t routes, jobs;
	uint32_t untracked; /* routes that have no place now */
};
void cw_leader_stats(const struct cw_leader *l, struct cw_leader_stats *ret);
