/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who leads a job, seen from a node that has ranks of it: rendezvous hashing of the job's route (a
 * weight, not its name: two jobs may have the same) over the nodes that are alive. Every node
 * computes the same without asking; when the leader falls silent for 10 s, the next by weight takes
 * over everywhere. That one gets a copy of each digest beforehand: it will know the ranks of a node
 * that is lost together with the leader.
 *
 * Publishes the own digests to their leaders and hears their answers (Members). Loop thread only;
 * does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "identity/job_id.h"
#include "leader/incident/leader_effects.h"
#include "proto/messages.h"

struct cw_election;

/* A leader that does not answer digests for this long is passed over, … */
#define CW_LEADER_SILENT_NS (10 * CW_NS_PER_S)
/* … for this long; then it is tried again. */
#define CW_LEADER_BAR_NS (30 * CW_NS_PER_S)
/*
 * Jobs published by this node: as many as processes could have. Users share them
 * (identity/shares.h); those that have no place go to the own node.
 */
#define CW_ELECTION_MAX_ROUTES 4096u
/*
 * Digests of a job that an answer of a peer of the version before may be about: it names no job,
 * but the digest, by its number. As many as there may be until that peer counts as silent, and a
 * few that could not wait.
 */
#define CW_ELECTION_MAX_NUMBERS 16u
/* A leader names no more nodes of a job than this, nor are more remembered. */
#define CW_ELECTION_MAX_NAMES 16u
/* Jobs without a digest for this long are forgotten. */
#define CW_ELECTION_FORGET_NS (60 * CW_NS_PER_S)

/* Weight of a node for a route: the highest living one leads. Pure. */
uint64_t cw_election_weight(uint64_t route, const char *node);

/* self: this node. Of the effects only send and peers. All borrowed. 0 or -ENOMEM. */
int cw_election_new(const struct cw_clock *clock, const char *self,
		    const struct cw_leader_effects *effects, struct cw_election **ret);
/* Takes NULL; returns NULL. */
struct cw_election *cw_election_free(struct cw_election *m);

/*
 * Sends the digest to its leader, and a copy to who leads next. Errors as of sending to
 * the leader.
 */
int cw_election_publish(struct cw_election *m, const struct cw_msg_digest *digest);
/* The leader's answer; ignored unless it comes from whom this node asked. */
void cw_election_answer(struct cw_election *m, const char *from, const struct cw_msg_members *msg);

/*
 * Of all peers, alive or not, the node is the one that leads the job where this one does not: what
 * it says about the job's alerts is believed.
 */
bool cw_election_is_deputy(const struct cw_election *m, const struct cw_job_id *job,
			   const char *node);

/*
 * This node leads the job only because it does not reach the one that should: others may reach that
 * one, and know what it has told people.
 */
bool cw_election_is_stand_in(const struct cw_election *m, const struct cw_job_id *job);

/*
 * The node leads a job that this one has ranks of, as far as this one knows, or would lead it
 * before the one that does: it may not have been noticed yet that it is back, or gone.
 */
bool cw_election_may_lead(const struct cw_election *m, const struct cw_job_id *job,
			  const char *node);

/*
 * The node leads the job, or its leader has named it as one that has ranks of it: what people type
 * there about the job is meant. False where this node has no ranks of the job, and of a node that
 * does not lead where there are too many to be named.
 */
bool cw_election_has_part(const struct cw_election *m, const struct cw_job_id *job,
			  const char *node);

/* A peer that leads the job rather than this node, when both are alive. */
bool cw_election_leads_before(const struct cw_election *m, const struct cw_job_id *job,
			      const char *node);

/* The node is heard of; the own one always. */
bool cw_election_is_alive(const struct cw_election *m, const char *node);

/* Its leader has an open incident of the job. */
bool cw_election_has_incident(const struct cw_election *m, const struct cw_job_id *job);
/* Answers that named neither a job nor a digest of this node, so far. */
uint64_t cw_election_unnamed(const struct cw_election *m);

/* Who leads the job as far as this node knows; NULL = this node has no ranks of it. */
const char *cw_election_leader(const struct cw_election *m, const struct cw_job_id *job);

/* Jobs of ranks on this node. Strings borrowed until the callback returns. */
struct cw_election_route {
	const struct cw_job_id *job;
	const char *label;
	uint32_t uid;
	const char *leader;
	uint32_t ranks_here, nodes;
	uint32_t standing; /* enum cw_standing, as the leader said last */
	int64_t since_ns;  /* monotonic */
};
typedef void (*cw_election_fn)(const struct cw_election_route *route, void *user);
void cw_election_each(const struct cw_election *m, cw_election_fn fn, void *user);
