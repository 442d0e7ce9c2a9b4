/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digests of one job id on its leader: the newest digest of each node. The next leader stores
 * copies of the same digests. If the leader is lost together with its ranks, the next leader reads
 * the copies and so knows these ranks.
 *
 * Digests contain ages. We convert ages to instants on this daemon's timeline by the time of
 * receipt, so the clocks of nodes need not agree. While this daemon is held up (stopped, or without
 * a processor), arriving digests wait in the kernel. We correct the time of each such digest by the
 * sender's clock, but by no more than this daemon was held up.
 *
 * Loop thread only; pure bookkeeping, no callbacks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "identity/job_id.h"
#include "leader/incident/leader_effects.h"
#include "proto/messages.h"

/*
 * The maximum number of nodes of one job id. The second limit is the maximum number of ranks on
 * these nodes that we evaluate (docs/design/budgets.md: 65,536).
 */
#define CW_JOB_DIGESTS_MAX_NODES 8192u
#define CW_JOB_DIGESTS_MAX_RANKS 65536u
/* A healthy node that sends no digest for this long has no more ranks of the job. */
#define CW_JOB_DIGESTS_GONE_NS (5 * CW_NS_PER_S)
/*
 * We drop an unreachable node after this time, even if all of the job's ranks are on it. Before
 * that its silence is a finding in itself, and its daemon may only be held up.
 */
#define CW_JOB_DIGESTS_FORGET_NS (600 * CW_NS_PER_S)

/* The number of digests from which we estimate a node's clock. They come about once a second. */
#define CW_JOB_DIGESTS_CLOCKS 8u

struct cw_job_digests_node {
	char *name;
	uint32_t state;       /* enum cw_node_state */
	int64_t received_ns;  /* when we received the digest, monotonic; its ages count from here */
	int64_t last_seen_ns; /* the same instant on the awake clock; silence counts from here */
	/*
	 * late_ns: how long the digest may have been unread before received_ns. held_ns: how long
	 * this daemon had been held up in total when it read the digest.
	 */
	int64_t late_ns, held_ns;
	/*
	 * How far this daemon's clock is ahead of the sender's, measured with each of the last
	 * digests. Each value includes the travel time of the digest, so the smallest value is
	 * nearest to the truth.
	 */
	int64_t ahead_ns[CW_JOB_DIGESTS_CLOCKS];
	uint64_t n_ahead;
	struct cw_message *digest; /* owned; its type is a copy if another node leads */
	uint64_t shape;            /* hash of the digest's ranks and their communicators */
};

struct cw_job_digests {
	uint64_t job_hash; /* job hash of the first digest */
	struct cw_job_id job;
	uint32_t uid;
	const char *label;                 /* the job's label; NULL = not initialized */
	struct cw_job_digests_node *nodes; /* sorted by name, ascending */
	unsigned n_nodes;
	uint32_t n_ranks; /* number of ranks in all stored digests */
	bool has_unread;  /* some digests are copies whose ranks we have not read yet */
	/*
	 * Changes whenever nodes, ranks or memberships change. While it is the same, computed
	 * components and the positions of ranks stay valid.
	 */
	uint64_t shape;
	uint64_t refused; /* number of digests that were over a limit, or not newer */
	/*
	 * Times on the awake clock; 0 = never. left_ns: the last time that a living node left
	 * because it had no ranks of the job any more. forgotten_ns: the last sign of life from a
	 * node that we dropped.
	 */
	int64_t left_ns, forgotten_ns;
	bool has_forgotten; /* we dropped a node since a caller last cleared this flag */
};

/* One rank of the job id: nodes[node].digest->digest.ranks[rank]. */
struct cw_rank_ref {
	uint32_t node, rank;
	uint32_t component; /* set by cw_job_components() */
};

static inline const struct cw_msg_rank *cw_job_digests_rank(const struct cw_job_digests *digests,
							    const struct cw_rank_ref *ref)
{
	return &digests->nodes[ref->node].digest->digest.ranks[ref->rank];
}

/*
 * Starts with the job of the first digest. Returns 0, or an error of cw_job_id_read(). The caller
 * must not move the struct afterwards.
 */
int cw_job_digests_init(struct cw_job_digests *digests, const struct cw_msg_digest *first);
void cw_job_digests_fini(struct cw_job_digests *digests);

/*
 * Takes *msg and sets it to NULL, if it is newer than the stored digest of the node. *ret_urgent:
 * the digest reports a death that the previous digest did not. Returns 0, -EEXIST (not newer),
 * -E2BIG or -ENOMEM.
 */
int cw_job_digests_put(struct cw_job_digests *digests, const char *node, struct cw_message **msg,
		       const struct cw_clock *clock, bool *ret_urgent);

/*
 * True if the last known node of the job is unreachable. We then do not know whether the job is
 * over.
 */
static inline bool cw_job_digests_is_lost(const struct cw_job_digests *digests)
{
	return digests->forgotten_ns > digests->left_ns;
}

/*
 * Reads the ranks of copies, from at most `most` nodes. Returns false if some copies are still
 * unread. The caller must not use any ranks before all are read.
 */
bool cw_job_digests_read(struct cw_job_digests *digests, unsigned most);

/* Updates the states of the nodes and drops nodes that have left. self: the name of this node. */
void cw_job_digests_refresh(struct cw_job_digests *digests, const struct cw_leader_effects *effects,
			    const char *self, const struct cw_clock *clock, int64_t silent_ns);
/*
 * True if some reporting node has sent no digest since since_awake_ns, a time on the awake clock.
 */
bool cw_job_digests_awaits(const struct cw_job_digests *digests, int64_t since_awake_ns);
/* True if the node's last digest, or a copy of it, has ranks. */
bool cw_job_digests_has_ranks_of(const struct cw_job_digests *digests, const char *node);
/*
 * True if at least one reporting node regards this node as the leader. The other nodes send copies.
 */
bool cw_job_digests_is_led_here(const struct cw_job_digests *digests);
/*
 * Compares the travel time of the node's last digest with that of its quickest digest. *ret_late_ns
 * is the difference: instants in the last digest appear too late here by this much. *ret_spread_ns
 * is the difference between the two quickest digests, a measure of certainty; -1 = too few digests.
 */
void cw_job_digests_node_clock(const struct cw_job_digests_node *n, int64_t *ret_late_ns,
			       int64_t *ret_spread_ns);
/*
 * Returns the number of rank processes that their own nodes do not watch, because of the nodes'
 * limits.
 */
uint64_t cw_job_digests_untracked(const struct cw_job_digests *digests);
/* Returns the number of nodes that report right now. */
unsigned cw_job_digests_n_reporting(const struct cw_job_digests *digests);
