/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the leader keeps of one job id: the newest digest of each node that sent one. The node that
 * would lead next keeps copies of the same: ranks that are lost together with the leader are known
 * to it, once it has read them. Digests hold ages; the instant of receipt puts them on this
 * daemon's timeline, so clocks need not agree. Those that come while this daemon is held up lie in
 * the kernel: by their sender's clock they are dated back, each by no more than it was.
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

/* Nodes of one route, and ranks of all of them that are looked at (docs/design/budgets.md: 65,536).
 */
#define CW_ROUTE_MAX_NODES 8192u
#define CW_ROUTE_MAX_RANKS 65536u
/* A node that is well but has sent no digest for this long has no ranks of the route any more. */
#define CW_ROUTE_GONE_NS (5 * CW_NS_PER_S)
/*
 * A node that is not heard of at all is kept (it is a finding, and its daemon may be held up), but
 * not for ever; also when it is the only one that has ranks of the route.
 */
#define CW_ROUTE_FORGET_NS (600 * CW_NS_PER_S)

/* Digests that tell how a node's clock goes; a second or so each. */
#define CW_ROUTE_CLOCKS 8u

struct cw_route_node {
	char *name;
	uint32_t state;      /* enum cw_node_state */
	int64_t received_ns; /* of the digest, monotonic: what its ages count from */
	int64_t heard_ns;    /* the same instant on the awake clock: what silence counts from */
	/* Of the time before received_ns, how long the digest may have lain unread; and how long
	 * this daemon had been held up in all when it was read. */
	int64_t late_ns, held_ns;
	/*
	 * How far this daemon's clock was ahead of the sender's when its last digests came: their
	 * way here is in it, so the least of them is the nearest to the truth.
	 */
	int64_t ahead_ns[CW_ROUTE_CLOCKS];
	uint64_t n_ahead;
	struct cw_message *digest; /* owned; a copy when another node is told first */
	uint64_t shape;            /* of the digest: its ranks and their communicators */
};

struct cw_route {
	uint64_t id; /* of the first digest; for peers of the version before */
	struct cw_job_id job;
	uint32_t uid;
	const char *label;           /* the job's; NULL = not made yet */
	struct cw_route_node *nodes; /* ascending by name */
	unsigned n_nodes;
	uint32_t n_ranks; /* of all digests held */
	bool has_unread;  /* some of them are copies whose ranks have not been read yet */
	/* Another one whenever there are other nodes, ranks or memberships: what was found out
	 * about the communicators' components, and the places of ranks, hold as long as it stays.
	 */
	uint64_t shape;
	uint64_t refused; /* digests beyond a limit, or not newer */
	/*
	 * Of the nodes that have left, on the awake clock; 0 = none. When the last one went that
	 * lived on without ranks of the job; when the last one was heard of that was forgotten.
	 */
	int64_t left_ns, forgotten_ns;
	bool has_forgotten; /* a node, since somebody cleared this */
};

/* One rank of the route: nodes[node].digest->digest.ranks[rank]. */
struct cw_rank_ref {
	uint32_t node, rank;
	uint32_t component; /* set by cw_job_components() */
};

static inline const struct cw_msg_rank *cw_route_rank(const struct cw_route *r,
						      const struct cw_rank_ref *ref)
{
	return &r->nodes[ref->node].digest->digest.ranks[ref->rank];
}

/* 0, or as cw_job_id_read(). Must not be moved afterwards. */
int cw_route_init(struct cw_route *r, const struct cw_msg_digest *first);
void cw_route_fini(struct cw_route *r);

/*
 * Takes *msg (sets it to NULL) when it is newer than what is held. *ret_urgent: it reports a death
 * that the one before did not. 0, -EEXIST (not newer), -E2BIG, -ENOMEM.
 */
int cw_route_put(struct cw_route *r, const char *node, struct cw_message **msg,
		 const struct cw_clock *clock, bool *ret_urgent);

/*
 * The last that was known of the job is a node that is out of reach: whether it is over, nobody
 * knows.
 */
static inline bool cw_route_is_lost(const struct cw_route *r)
{
	return r->forgotten_ns > r->left_ns;
}

/*
 * Reads the ranks of copies, of so many nodes at most; false: others are left. Before it has said
 * true, nobody may look at ranks.
 */
bool cw_route_read(struct cw_route *r, unsigned most);

/* Brings the nodes' states up to date and drops those that have left. self: this node. */
void cw_route_refresh(struct cw_route *r, const struct cw_leader_effects *e, const char *self,
		      const struct cw_clock *clock, int64_t silent_ns);
/* Some node that reports was not heard since then, on the awake clock. */
bool cw_route_awaits(const struct cw_route *r, int64_t since_awake_ns);
/* By its last digest, or a copy of it. */
bool cw_route_has_ranks_of(const struct cw_route *r, const char *node);
/* Whether a node that reports takes this one for the leader; the others send copies. */
bool cw_route_is_led_here(const struct cw_route *r);
/*
 * Instants in the node's digest, as instants here, are late by *ret_late_ns: so much longer than
 * others was this digest under way. *ret_spread_ns: how far the two quickest are apart, which tells
 * how well that is known; -1 = too few have come.
 */
void cw_route_node_clock(const struct cw_route_node *n, int64_t *ret_late_ns,
			 int64_t *ret_spread_ns);
/* Rank processes that their nodes have no place for. */
uint64_t cw_route_untracked(const struct cw_route *r);
/* How many nodes report right now. */
unsigned cw_route_n_reporting(const struct cw_route *r);
