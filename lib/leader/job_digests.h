/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digests of one job id on its leader: the newest from each node. The next leader stores
 * copies of the same digests. Once it has read them, it knows the ranks that are lost together
 * with the leader.
 *
 * Digests hold ages. We convert these to instants on this daemon's timeline by the time of receipt,
 * so clocks need not agree. Digests that arrive while this daemon is held up wait in the kernel. We
 * date them back by the sender's clock, each by no more than the daemon was held up.
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
 * Nodes of one job id, and ranks of all of them that we evaluate (docs/design/budgets.md: 65,536).
 */
#define CW_JOB_DIGESTS_MAX_NODES 8192u
#define CW_JOB_DIGESTS_MAX_RANKS 65536u
/* A healthy node without a digest for this long has no more ranks of the job. */
#define CW_JOB_DIGESTS_GONE_NS (5 * CW_NS_PER_S)
/*
 * We keep an unreachable node for this long, and then drop it, even if it alone has ranks of the
 * job. The silence is a finding in itself, and the node's daemon may only be held up.
 */
#define CW_JOB_DIGESTS_FORGET_NS (600 * CW_NS_PER_S)

/* Number of digests that we use to estimate a node's clock, about one a second. */
#define CW_JOB_DIGESTS_CLOCKS 8u

struct cw_job_digests_node {
	char *name;
	uint32_t state;       /* enum cw_node_state */
	int64_t received_ns;  /* receipt of the digest, monotonic: its ages count from here */
	int64_t last_seen_ns; /* the same instant on the awake clock: silence counts from here */
	/*
	 * late_ns: how long the digest may have been unread before received_ns. held_ns: how long
	 * this daemon had been held up in total at the time of reading.
	 */
	int64_t late_ns, held_ns;
	/*
	 * Offset of this daemon's clock ahead of the sender's, one for each of its last digests.
	 * Each offset includes the travel time, so the least is nearest to the truth.
	 */
	int64_t ahead_ns[CW_JOB_DIGESTS_CLOCKS];
	uint64_t n_ahead;
	struct cw_message *digest; /* owned; type copy if another node leads */
	uint64_t shape;            /* hash of the digest's ranks and their communicators */
};

struct cw_job_digests {
	uint64_t job_hash; /* from the first digest; for peers of the previous version */
	struct cw_job_id job;
	uint32_t uid;
	const char *label;                 /* the job's; NULL = not initialized */
	struct cw_job_digests_node *nodes; /* sorted by name, ascending */
	unsigned n_nodes;
	uint32_t n_ranks; /* sum over all stored digests */
	bool has_unread;  /* some digests are copies with ranks that we have not read yet */
	/*
	 * Changes whenever nodes, ranks or memberships change. Computed components and the
	 * positions of ranks stay valid while it is the same.
	 */
	uint64_t shape;
	uint64_t refused; /* digests over a limit, or not newer */
	/*
	 * Times on the awake clock; 0 = never. left_ns: when the last node left that lived
	 * on without ranks of the job. forgotten_ns: the last sign of life from a node that
	 * we dropped.
	 */
	int64_t left_ns, forgotten_ns;
	bool has_forgotten; /* we dropped a node since a caller last cleared this */
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

/* 0, or as cw_job_id_read(). Must not be moved afterwards. */
int cw_job_digests_init(struct cw_job_digests *digests, const struct cw_msg_digest *first);
void cw_job_digests_fini(struct cw_job_digests *digests);

/*
 * Takes *msg (sets it to NULL) if it is newer than the stored digest. *ret_urgent: it reports a
 * death that the previous digest did not. 0, -EEXIST (not newer), -E2BIG, -ENOMEM.
 */
int cw_job_digests_put(struct cw_job_digests *digests, const char *node, struct cw_message **msg,
		       const struct cw_clock *clock, bool *ret_urgent);

/*
 * True if the last known node of the job is out of reach. We do not know whether the job is over.
 */
static inline bool cw_job_digests_is_lost(const struct cw_job_digests *digests)
{
	return digests->forgotten_ns > digests->left_ns;
}

/*
 * Reads the ranks of copies, from at most this many nodes. False: some copies are still unread, and
 * callers must not use ranks yet.
 */
bool cw_job_digests_read(struct cw_job_digests *digests, unsigned most);

/* Updates the nodes' states and drops nodes that have left. self: this node. */
void cw_job_digests_refresh(struct cw_job_digests *digests, const struct cw_leader_effects *e,
			    const char *self, const struct cw_clock *clock, int64_t silent_ns);
/* True if some reporting node has sent no digest since then. since_awake_ns: on the awake clock. */
bool cw_job_digests_awaits(const struct cw_job_digests *digests, int64_t since_awake_ns);
/* True if the node's last digest, or a copy of it, has ranks. */
bool cw_job_digests_has_ranks_of(const struct cw_job_digests *digests, const char *node);
/*
 * True if at least one reporting node takes this node for the leader; the other nodes send copies.
 */
bool cw_job_digests_is_led_here(const struct cw_job_digests *digests);
/*
 * Instants in the node's last digest appear *ret_late_ns too late here, because that digest
 * travelled so much longer than the quickest one. *ret_spread_ns: distance between the two quickest
 * digests, a measure of the certainty; -1 = too few digests.
 */
void cw_job_digests_node_clock(const struct cw_job_digests_node *n, int64_t *ret_late_ns,
			       int64_t *ret_spread_ns);
/* Rank processes over the limit of their own nodes. */
uint64_t cw_job_digests_untracked(const struct cw_job_digests *digests);
/* Number of nodes that report right now. */
unsigned cw_job_digests_n_reporting(const struct cw_job_digests *digests);
