/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of daemons in memory, with virtual time. Each node has the product's own transport,
 * election, leader and incidents. Queues replace the sockets between them, and every message goes
 * through the codec. The caller can cut, hold or slow links, and delay, lose or double digests. It
 * can also kill, hold or restart nodes, and give a node a later version or its own clock. All
 * events happen inside network_run(). It never waits or draws random numbers: the same calls give
 * the same run.
 *
 * The caller provides a node's knowledge of its ranks, as struct network_ranks. Callers are tests
 * with their own jobs, a benchmark that only sends digests, and the suite's virtual cluster.
 *
 *	struct network_config config = { .n_nodes = 4, .ranks = &ranks, .user = me };
 *	network_new(&config, &net);
 *	network_run(net, 30 * CW_NS_PER_S);      … ranks.publish() calls network_publish()
 *	network_set_link(net, 0, 1, NETWORK_CUT);
 *	network_run_until_alert(net, 60 * CW_NS_PER_S);
 *	net->alerts[0].doc                       … collwatch.incident/1, as a webhook would get it
 *
 * Time moves in steps of config.tick_ns. In each step, ranks.advance() runs first, then each node
 * in order. A node processes its connections' heartbeats, its due digests, its inbox, the deadlines
 * of its requests, and its leader: four times a second a tick, otherwise the work that the leader
 * has deferred. So a message that a node sends reaches a later node in the same step, and an
 * earlier node in the next step.
 *
 * If memory runs out, functions without a result record the error, and network_run() returns it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/awake.h"
#include "common/clock.h"
#include "lab/vnet/fake_store.h"
#include "leader/election.h"
#include "leader/leader.h"
#include "transport/tcp.h"
#include "transport/transport.h"

/*
 * Limit on the nodes. Each node knows all others, so the memory grows with the square of their
 * number.
 */
#define NETWORK_MAX_NODES 8192u
#define NETWORK_TICK_NS (50 * CW_NS_PER_MS)
#define NETWORK_DIGEST_EVERY_NS CW_NS_PER_S
/* A connection without an answer breaks after this time; see transport/tcp.h. */
#define NETWORK_UNANSWERED_NS (CW_TCP_UNACKED_MS * CW_NS_PER_MS)
#define NETWORK_LEADER_EVERY_NS (250 * CW_NS_PER_MS)
#define NETWORK_NAME 24

/* The time on a correct wall clock at virtual time 0. It is a day in 2023. */
#define NETWORK_WALL_NS (INT64_C(1700000000) * CW_NS_PER_S)

struct network;
struct network_frame;
struct network_node;

/*
 * The half of a daemon that knows its ranks. user comes from the configuration; n->index identifies
 * the node. We call these functions only for running nodes. Each may be NULL: we then do nothing.
 */
struct network_ranks {
	/* Called once per step, before the nodes' iterations. */
	void (*advance)(void *user, int64_t now_ns);
	/*
	 * Called when the node's digests are due: once a second, each node at its own moment. The
	 * callback makes the digests and passes each to network_publish(). For a node without
	 * ranks, it passes none. advance() may also publish urgent digests (about a death).
	 */
	void (*publish)(void *user, struct network_node *n);
	/*
	 * Answers a request with network_answer(), at once or later. The answer is a
	 * CW_MSG_WINDOW_REPLY with the id of q.
	 */
	void (*windows)(void *user, struct network_node *n, const char *from,
			const struct cw_msg_window_request *q);
	/*
	 * Answers a request with a CW_MSG_EVIDENCE_REPLY for each target. If the function is NULL,
	 * each target gets one stack of one function.
	 */
	void (*evidence)(void *user, struct network_node *n, const char *from,
			 const struct cw_msg_evidence_request *q);
	void (*search)(void *user, struct network_node *n, const struct cw_msg_rank_search *q);
	/* Called when the node's daemon has started, with an empty memory. */
	void (*started)(void *user, struct network_node *n);
	/*
	 * Delivers an alert to users. 0 = the alert is delivered. <0: the receiver refuses it, and
	 * we try again. NETWORK_NOT_DELIVERED: the receiver accepts it, but the delivery fails
	 * later.
	 */
	int (*alert)(void *user, struct network_node *n, const struct cw_incident_due *due,
		     const json_t *doc);
	/*
	 * Returns a static word for the reason why an alert is suppressed; NULL = it is not
	 * suppressed.
	 */
	const char *(*suppress_reason)(void *user, struct network_node *n,
				       const struct cw_incident_due *due);
};

#define NETWORK_NOT_DELIVERED 1

/* An observer of events as they happen. All arguments are borrowed. Each callback may be NULL. */
struct network_observer {
	/*
	 * Called when a message arrives at n, or leaves it for another node. frame: the complete
	 * frame; NULL = the message is from n itself. To pass msg, we decode a leaving frame once
	 * more.
	 */
	void (*on_message)(void *user, const struct network_node *n, bool is_out, const char *peer,
			   const struct cw_message *msg, const uint8_t *frame, size_t len);
	void (*on_put)(void *user, const struct network_node *n, const struct cw_bundle *bundle);
	void (*on_update_incident)(void *user, const struct network_node *n,
				   const json_t *incident);
	/* Called after ranks.alert(), whose result is r. */
	void (*on_alert)(void *user, const struct network_node *n,
			 const struct cw_incident_due *due, const json_t *doc, int r);
	/* Called for an outside event on a node: "killed", "cut off from node-b", … */
	void (*on_event)(void *user, const struct network_node *n, const char *what);
	/* Called for a line in the log of the node's leader, at any level. */
	void (*on_log)(void *user, const struct network_node *n, const char *text);
	/* Called before and after a daemon's work in a step: publishing, messages, its leader. */
	void (*on_iteration)(void *user, const struct network_node *n, bool is_end);
	void *user;
};

enum network_life {
	NETWORK_RUNS = 0,
	/* the daemon is stopped: connected, but silent; its kernel buffers messages */
	NETWORK_HELD,
	NETWORK_DEAD,
};

/* How a daemon ends. */
enum network_end {
	NETWORK_KILLED,  /* the daemon is killed, and its connections break */
	NETWORK_GOODBYE, /* the daemon ends and announces that it will be back */
	NETWORK_LOST,    /* the machine is gone: connections break after a time without answers */
};

enum network_link {
	NETWORK_JOINED = 0,
	NETWORK_CUT, /* the connection is broken, and a new one is impossible */
	/* the link delivers nothing and reports no error; old messages arrive afterwards */
	NETWORK_STALLED,
};

/*
 * Faults of digests on their way to other nodes. A fault strikes each n-th digest; 0 = there is
 * none.
 */
struct network_digests {
	unsigned late_every, lost_every, twice_every;
	int64_t late_ns; /* delay of late digests; later digests overtake them */
};

/* A machine's clocks, relative to virtual time. */
struct network_time {
	int64_t ahead_ns; /* how far both clocks are ahead */
	/* How much further the wall clock is ahead; may change at any time. */
	int64_t wall_ahead_ns;
	int32_t drift_ppm; /* both clocks run faster by this, from the network's beginning on */
};

struct network_node {
	/* ---- read-only ---- */
	struct network *network;
	unsigned index;
	char name[NETWORK_NAME];
	enum network_life life;
	bool is_newer;   /* the daemon has a later version; set by network_set_newer() */
	bool is_speaker; /* the node has no leader: see network_config.n_leading */
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct cw_election *election;
	struct cw_leader *leader;
	struct cw_leader_effects effects; /* effects that transport and leader use */
	struct fake_store store;
	uint64_t epoch;   /* epoch of this life of the daemon */
	uint64_t digests; /* digests published in this life */
	/* number of ranks for which the node got a request; early: before the hang */
	unsigned evidence_asked, briefly_asked, early_asked;
	uint32_t evidence_what; /* CW_EVIDENCE_* of all requests */
	unsigned searches;
	/* ---- writable between runs: wall_ahead_ns; the rest only while no daemon runs ---- */
	struct network_time time;
	/* ---- private to the network ---- */
	struct cw_clock machine;
	struct cw_awake awake;
	struct network_frame *inbox;
	int64_t beat_ns;
	int64_t lost_ns;       /* time when the machine was lost; 0 = never, or all peers know */
	unsigned digest_phase; /* position of the node's digests in a second, in ticks */
};

struct network_alert {
	unsigned node; /* the sender */
	int64_t at_ns; /* virtual time */
	uint32_t uid;
	char id[CW_INCIDENT_ID_LEN];
	json_t *doc; /* collwatch.incident/1, copied when it was sent */
};

/* The post-mortem of a failed job, as its leader stored it. */
struct network_postmortem {
	unsigned node;
	int64_t at_ns; /* virtual time */
	char id[CW_INCIDENT_ID_LEN];
	bool may_alert; /* no alert of the job has gone out before */
	json_t *doc;    /* collwatch.incident/1; a copy */
};

struct network_config {
	unsigned n_nodes;
	/*
	 * The number of nodes, counted from the first, that have a transport, an election and a
	 * leader; 0 = all. The other nodes only speak: network_say() sends their messages, and we
	 * drop messages to them. This allows measuring one leader of thousands of nodes.
	 */
	unsigned n_leading;
	const char *const *names;         /* NULL = node-0, node-1, … */
	int64_t tick_ns;                  /* 0 = NETWORK_TICK_NS; at most NETWORK_LEADER_EVERY_NS */
	int64_t start_ns;                 /* virtual time at the beginning; 0 = 1,000 s */
	int64_t latency_ns;               /* delay of every message to another node */
	const struct network_time *times; /* clocks per node; NULL = all clocks show virtual time */
	const struct cw_thresholds *thresholds; /* borrowed; NULL = the default */
	bool has_no_notices;
	uint32_t iteration_members; /* see leader/leader.h; 0 = its default */
	/* See leader/leader.h; NULL = evaluations take no time. */
	int64_t (*cpu_ns)(void *user);
	const struct network_ranks *ranks; /* borrowed; NULL = no node has ranks */
	/* argument of the functions in ranks, and of cpu_ns */
	void *user;
	const struct network_observer *observer; /* borrowed; NULL = none */
};

struct network {
	/* ---- read-only ---- */
	struct network_config config;
	int64_t now_ns; /* virtual time */
	struct network_node *nodes;
	const struct network_node *running; /* the node with the current turn; NULL = none */
	struct network_alert *alerts;       /* delivered alerts, over the lives of all daemons */
	unsigned n_alerts, cap_alerts, n_refused_alerts;
	struct network_alert *notices; /* recorded notices, each id once */
	unsigned n_notices, cap_notices;
	/* alerts that the receiver accepted but did not deliver */
	struct network_alert *undelivered;
	unsigned n_undelivered, cap_undelivered;
	struct network_postmortem *postmortems; /* post-mortems, over the lives of all daemons */
	unsigned n_postmortems, cap_postmortems;
	/* ---- writable between runs ---- */
	struct network_digests digest_faults;
	uint32_t iteration_members;              /* setting of leaders that start from now on */
	const struct network_observer *observer; /* NULL = none */
	/* ---- private to the network ---- */
	int64_t start_ns, tick_ns;
	uint64_t ticks;
	uint8_t *links; /* enum network_link, n_nodes × n_nodes */
	/*
	 * Number of digests per pair of nodes, counted while digests have faults; n_nodes ×
	 * n_nodes.
	 */
	unsigned *n_digests;
	int error;
};

/* Makes a network. Returns 0; -EINVAL (no nodes, too many, or too long a tick); -ENOMEM. */
int network_new(const struct network_config *config, struct network **ret);
/* Accepts NULL and returns NULL. */
struct network *network_free(struct network *net);

/*
 * Run the network in whole ticks, so for up to one tick longer than requested. Return 0 or -ENOMEM.
 */
int network_run(struct network *net, int64_t ns);
int network_run_until(struct network *net, int64_t until_ns);
/*
 * Runs until one more alert is sent, or for this time at most. Returns 1 if an alert was sent, 0 if
 * not, or -ENOMEM.
 */
int network_run_until_alert(struct network *net, int64_t ns);

/* ---- for the half that knows ranks ---- */

/*
 * Sends the node's digest of one job to the job's leader and to the next node in order. Sets its
 * node, epoch and number, and borrows the rest. Works like cw_election_publish().
 */
int network_publish(struct network_node *n, struct cw_msg_digest *d);
/* Sends an answer to a requester, which may be the node itself. */
void network_answer(struct network_node *n, const char *to, const struct cw_message *msg);
/* Sends a message from a node that only speaks to a node that leads. */
int network_say(struct network *net, unsigned from, unsigned to, const struct cw_message *msg);

/* ---- events on nodes and links ---- */

/* Ends the node's daemon. Its ranks continue, but are invisible. */
void network_kill(struct network *net, unsigned node, enum network_end how);
/* Starts the node's daemon, from any state, with an empty memory and the contents of its disk. */
void network_start(struct network *net, unsigned node);
void network_hold(struct network *net, unsigned node);
void network_go_on(struct network *net, unsigned node);
/* Restarts only the leader of the node. */
void network_restart_leader(struct network *net, unsigned node);
/*
 * Gives the node an invented later version from now on. Its messages to other nodes then have
 * fields that this version does not know (lab/vnet/newer_version.h). Call it before the first run,
 * or between network_kill() and network_start().
 */
void network_set_newer(struct network *net, unsigned node);
/*
 * Sets the link between two nodes, in both directions. When it becomes NETWORK_JOINED after a cut,
 * the nodes reconnect at once.
 */
void network_set_link(struct network *net, unsigned a, unsigned b, enum network_link how);
/* Sets the links of a node to all others. */
void network_set_links_of(struct network *net, unsigned node, enum network_link how);

/* ---- results ---- */

/* Returns the node that claims to lead the only job; -1 = no node, -2 = more than one. */
int network_leader(const struct network *net);
/* Returns the only job that the node leads; NULL = none. */
const struct cw_job *network_job(const struct network *net, unsigned node);
/* Returns the node's stored data of an incident; NULL = none. */
const struct fake_store_bundle *network_bundle(const struct network *net, unsigned node,
					       const char *id);
