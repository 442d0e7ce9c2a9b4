/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the leader of each job that has ranks on this node. We use rendezvous hashing of the job
 * hash over the living nodes. The hash is only a weight and never a name, because two jobs may have
 * the same hash. Every node computes the same leader without asking. When the leader is silent for
 * 10 s, the node with the next weight takes over on every node. That node gets a copy of each
 * digest beforehand. So it knows the ranks of a node that is lost together with the leader.
 *
 * Sends this node's digests to their leaders, and takes the leaders' answers (Members). Loop thread
 * only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "identity/job_id.h"
#include "leader/incident/leader_effects.h"
#include "proto/messages.h"

struct cw_election;

/* If a leader does not answer digests for this long, we bar it for CW_LEADER_BAR_NS. */
#define CW_LEADER_SILENT_NS (10 * CW_NS_PER_S)
/* How long a barred leader stays barred. Then we try it again. */
#define CW_LEADER_BAR_NS (30 * CW_NS_PER_S)
/*
 * The maximum number of jobs that this node publishes. It equals the maximum number of processes on
 * a node, each of which may be a job. Users share the limit (identity/quota.h). A job over the
 * limit has this node as its leader.
 */
#define CW_ELECTION_MAX_JOBS 4096u
/* The maximum number of nodes that a leader names for a job, and that we remember. */
#define CW_ELECTION_MAX_NAMES 16u
/* We forget a job that has had no digest for this long. */
#define CW_ELECTION_FORGET_NS (60 * CW_NS_PER_S)

/*
 * Returns the weight of a node for a job hash. The living node with the highest weight leads. Pure.
 */
uint64_t cw_election_weight(uint64_t job_hash, const char *node);

/*
 * Makes an election without jobs. self: the name of this node. Uses only `send` and `peers` of the
 * effects. Borrows all arguments. Returns 0 or -ENOMEM.
 */
int cw_election_new(const struct cw_clock *clock, const char *self,
		    const struct cw_leader_effects *effects, struct cw_election **ret);
/* Frees the election, which may be NULL. Returns NULL. */
struct cw_election *cw_election_free(struct cw_election *election);

/*
 * Sends the digest to the leader of its job, and a copy to the next leader. Returns the error of
 * sending to the leader.
 */
int cw_election_publish(struct cw_election *election, const struct cw_msg_digest *digest);
/* Takes an answer to a digest. Ignores it unless the sender is the leader that this node asked. */
void cw_election_answer(struct cw_election *election, const char *from,
			const struct cw_msg_members *msg);

/*
 * True if the node is a peer, and no other peer has a higher weight for the job, whether alive or
 * not. Such a node leads when this node is away. So we believe its claims about the job's alerts.
 */
bool cw_election_is_deputy(const struct cw_election *election, const struct cw_job_id *job,
			   const char *node);

/*
 * True if this node leads the job only because it cannot reach the rightful leader. Other nodes may
 * reach that leader, and it may have sent alerts.
 */
bool cw_election_is_stand_in(const struct cw_election *election, const struct cw_job_id *job);

/*
 * True if the node leads the job, or precedes the current leader in the election. This node must
 * have ranks of the job. The answer is this node's view. It may not have noticed yet that the other
 * node is back, or gone.
 */
bool cw_election_may_lead(const struct cw_election *election, const struct cw_job_id *job,
			  const char *node);

/*
 * True if the node leads the job, or if the leader says that the node has ranks of the job. A mute
 * from that node is then meant for this job. False if this node has no ranks of the job. If the
 * leader cannot name all nodes of the job, the answer is false for all other nodes.
 */
bool cw_election_has_part(const struct cw_election *election, const struct cw_job_id *job,
			  const char *node);

/* True if the node is a peer that leads the job instead of this node when both are alive. */
bool cw_election_leads_before(const struct cw_election *election, const struct cw_job_id *job,
			      const char *node);

/* True if the node is alive. Always true for this node. */
bool cw_election_is_alive(const struct cw_election *election, const char *node);

/* True if the job's leader has an open incident of this job. */
bool cw_election_has_incident(const struct cw_election *election, const struct cw_job_id *job);
/*
 * Returns the number of answers so far that named no job, or a job that does not belong to the key.
 */
uint64_t cw_election_unnamed(const struct cw_election *election);

/* Returns the job's leader as far as this node knows. NULL = this node has no ranks of the job. */
const char *cw_election_leader(const struct cw_election *election, const struct cw_job_id *job);

/* A job with ranks on this node. The callback borrows the strings until it returns. */
struct cw_election_job {
	const struct cw_job_id *job;
	const char *label;
	uint32_t uid;
	const char *leader;
	uint32_t ranks_here, nodes;
	uint32_t standing; /* enum cw_standing, from the leader's last answer */
	int64_t since_ns;  /* since when the leader leads; monotonic */
};
typedef void (*cw_election_fn)(const struct cw_election_job *job, void *user);
void cw_election_each(const struct cw_election *election, cw_election_fn fn, void *user);
