/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of daemons in memory, with virtual time: each node has the product's own transport,
 * election, leader and incidents, joined by queues instead of sockets; every message goes through
 * the codec. Links can be cut, held or slow, digests late, lost or doubled, nodes killed, held up,
 * started anew, of the version before, or with a clock of their own. Everything happens inside
 * network_run(); nothing waits, nothing is drawn: the same calls give the same run.
 *
 * What a node knows of its ranks is the caller's: it fills in struct network_ranks. A test that
 * wants a job of its own, a benchmark that only sends digests, and the suite's virtual cluster are
 * such callers.
 *
 *	struct network_config config = { .n_nodes = 4, .ranks = &ranks, .user = me };
 *	network_new(&config, &net);
 *	network_run(net, 30 * CW_NS_PER_S);      … ranks.publish() calls network_publish()
 *	network_cut(net, 0, 1);
 *	network_run_until_alert(net, 60 * CW_NS_PER_S);
 *	net->alerts[0].doc                       … collwatch.incident/1, as a webhook would get it
 *
 * Time moves in steps of config.tick_ns. In each, ranks.advance() comes first; then the nodes in
 * order: beats, its digests where they are due, what has come for it, its requests' deadlines, and
 * its leader: a tick four times a second, else what that put off. So what a node sends in its turn
 * reaches a later one in the same step, an earlier one in the next.
 *
 * Running out of memory: functions that return nothing note it, network_run() returns it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/awake.h"
#include "common/clock.h"
#include "lab/vnet/shelf.h"
#include "leader/election.h"
#include "leader/leader.h"
#include "transport/tcp.h"
#include "transport/transport.h"

/* Each with all others: what they know of each other is a square. */
#define NETWORK_MAX_NODES 8192u
#define NETWORK_TICK_NS (50 * CW_NS_PER_MS)
#define NETWORK_DIGEST_EVERY_NS CW_NS_PER_S
/* After so long without an answer a connection breaks: transport/tcp.h. */
#define NETWORK_UNANSWERED_NS (CW_TCP_UNACKED_MS * CW_NS_PER_MS)
#define NETWORK_LEADER_EVERY_NS (250 * CW_NS_PER_MS)
#define NETWORK_NAME 24

/* What clocks on the wall show at virtual time 0, but for those that are wrong: a day of 2023. */
#define NETWORK_WALL_NS (INT64_C(1700000000) * CW_NS_PER_S)

struct network;
struct network_frame;
struct network_node;

/*
 * The half of a daemon that knows its ranks. user is that of the configuration. n->index says which
 * node; only living nodes that are not held up are asked. Each may be NULL: then nothing happens.
 */
struct network_ranks {
	/* Once in each step of time, before the nodes' turns. */
	void (*advance)(void *user, int64_t now_ns);
	/*
	 * The node's digests are due: once a second, each node at its own moment. Make them and
	 * hand each to network_publish(); a node without ranks hands over none. What must not wait
	 * (a death) may be published from advance(), too.
	 */
	void (*publish)(void *user, struct network_node *n);
	/* Answer with network_answer(), at once or later: CW_MSG_WINDOW_REPLY under the id of q. */
	void (*windows)(void *user, struct network_node *n, const char *from,
			const struct cw_msg_window_request *q);
	/* CW_MSG_EVIDENCE_REPLY for each target; NULL: each gets one stack of one function. */
	void (*evidence)(void *user, struct network_node *n, const char *from,
			 const struct cw_msg_evidence_request *q);
	void (*search)(void *user, struct network_node *n, const struct cw_msg_rank_search *q);
	/* The daemon of the node has begun, with an empty memory. */
	void (*started)(void *user, struct network_node *n);
	/*
	 * Which job that route is: of a daemon of the version before, which knows it by nothing
	 * else. False: of none.
	 */
	bool (*job_of_route)(void *user, uint64_t route, uint32_t *ret_uid, const char **ret_label);
	/*
	 * Delivers an alert to people: 0; <0: nobody takes it, and it is tried again;
	 * NETWORK_NOT_DELIVERED: it is taken, and it turns out later that nobody got it.
	 */
	int (*alert)(void *user, struct network_node *n, const struct cw_incident_due *due,
		     const json_t *doc);
	/* Why an alert is suppressed, a static word; NULL = it is not. */
	const char *(*suppress_reason)(void *user, struct network_node *n,
				       const struct cw_incident_due *due);
};

#define NETWORK_NOT_DELIVERED 1

/* Sees what happens when it happens. All borrowed; each may be NULL. */
struct network_observer {
	/*
	 * Comes to n, or leaves it for another node. frame: the whole of it; NULL = from n itself.
	 * Frames that are on their way are decoded once more for it.
	 */
	void (*on_message)(void *user, const struct network_node *n, bool is_out, const char *peer,
			   const struct cw_message *msg, const uint8_t *frame, size_t len);
	void (*on_put)(void *user, const struct network_node *n, const struct cw_bundle *bundle);
	void (*on_amend)(void *user, const struct network_node *n, const json_t *incident);
	/* r: what ranks.alert() says. */
	void (*on_alert)(void *user, const struct network_node *n,
			 const struct cw_incident_due *due, const json_t *doc, int r);
	/* What is done to a node from outside: "killed", "cut off from node-b", … */
	void (*on_event)(void *user, const struct network_node *n, const char *what);
	/* A line of its leader's log, of any level. */
	void (*on_log)(void *user, const struct network_node *n, const char *text);
	/* Around all that a node's daemon does in a step: publishing, messages, its leader. */
	void (*on_turn)(void *user, const struct network_node *n, bool is_end);
	void *user;
};

enum network_life {
	NETWORK_RUNS = 0,
	NETWORK_HELD, /* stopped: connected, but silent. What it is sent waits in its kernel. */
	NETWORK_DEAD,
};

/* How a daemon ends. */
enum network_end {
	NETWORK_KILLED,  /* its connections break */
	NETWORK_GOODBYE, /* it says that it will be back */
	NETWORK_LOST, /* the machine has gone: they break when nothing was answered for a while */
};

enum network_link {
	NETWORK_JOINED = 0,
	NETWORK_CUT,     /* the connection is broken, and none can be made */
	NETWORK_STALLED, /* nothing gets through, nobody is told; what was sent comes afterwards */
};

/* What befalls digests on their way to other nodes: each n-th of them, 0 = none. */
struct network_digests {
	unsigned late_every, lost_every, twice_every;
	int64_t late_ns; /* later ones overtake it */
};

/* A machine's clocks, against virtual time. */
struct network_time {
	int64_t ahead_ns;      /* both of them */
	int64_t wall_ahead_ns; /* the wall clock, besides; may be changed at any time */
	int32_t drift_ppm;     /* both run so much faster from the network's beginning on */
};

struct network_node {
	/* ---- to be read ---- */
	struct network *network;
	unsigned index;
	char name[NETWORK_NAME];
	enum network_life life;
	bool is_old;     /* of the version before; set it by network_set_old() */
	bool is_speaker; /* has no leading half: see network_config.n_leading */
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct cw_election *election;
	struct cw_leader *leader;
	struct cw_leader_effects effects; /* of both */
	struct network_shelf shelf;
	uint64_t epoch;           /* of this life of its daemon */
	uint64_t digests;         /* published in it */
	unsigned unnamed_windows; /* requests for them that did not say of which job */
	unsigned evidence_asked, briefly_asked; /* ranks */
	unsigned searches;
	/* ---- to be set between runs: the wall clock's; the rest while no daemon runs ---- */
	struct network_time time;
	/* ---- the network's ---- */
	struct cw_clock machine;
	struct cw_awake awake;
	struct network_frame *inbox;
	int64_t beat_ns;
	int64_t lost_ns;       /* when its machine went, until all know; 0 = it did not */
	unsigned digest_phase; /* in ticks */
};

struct network_alert {
	unsigned node; /* who sent it */
	int64_t at_ns; /* virtual */
	uint32_t uid;
	char id[CW_INCIDENT_ID_LEN];
	json_t *doc; /* collwatch.incident/1; a copy, as it was then */
};

/* What a leader kept of a job that failed, each in its node's store. */
struct network_epitaph {
	unsigned node;
	int64_t at_ns; /* virtual */
	char id[CW_INCIDENT_ID_LEN];
	bool may_tell; /* no alert of the job went out before */
	json_t *doc;   /* collwatch.epitaph/1; a copy */
};

struct network_config {
	unsigned n_nodes;
	/*
	 * So many, from the first, have a transport, an election and a leader; 0 = all. The others
	 * only speak: network_say() sends what they say, and what is sent to them is dropped. For
	 * measuring one leader of thousands of nodes.
	 */
	unsigned n_leading;
	const char *const *names;         /* NULL = node-0, node-1, … */
	int64_t tick_ns;                  /* 0 = NETWORK_TICK_NS; NETWORK_LEADER_EVERY_NS at most */
	int64_t start_ns;                 /* virtual time begins here; 0 = at 1,000 s */
	int64_t latency_ns;               /* of every message to another node */
	const struct network_time *times; /* of each node; NULL = virtual time */
	const struct cw_thresholds *thresholds; /* borrowed; NULL = the default */
	bool has_no_notices;
	uint32_t turn_members;                   /* see leader/leader.h; 0 = its default */
	int64_t (*cpu_ns)(void *user);           /* likewise; NULL = looks take no time */
	const struct network_ranks *ranks;       /* borrowed; NULL = nobody has any */
	void *user;                              /* of ranks and cpu_ns */
	const struct network_observer *observer; /* borrowed; NULL = none */
};

struct network {
	/* ---- to be read ---- */
	struct network_config config;
	int64_t now_ns; /* virtual */
	struct network_node *nodes;
	const struct network_node *running; /* whose turn it is; NULL = nobody's */
	struct network_alert *alerts;       /* delivered, over the lives of all daemons */
	unsigned n_alerts, cap_alerts, n_refused_alerts;
	struct network_alert *notices; /* told of, each id once */
	unsigned n_notices, cap_notices;
	struct network_alert *undelivered; /* on their way to nobody */
	unsigned n_undelivered, cap_undelivered;
	struct network_epitaph *epitaphs; /* over the lives of all daemons */
	unsigned n_epitaphs, cap_epitaphs;
	/* ---- to be set between runs ---- */
	struct network_digests digest_faults;
	uint32_t turn_members;                   /* of leaders started from now on */
	const struct network_observer *observer; /* NULL = none */
	/* ---- the network's ---- */
	int64_t start_ns, tick_ns;
	uint64_t ticks;
	uint8_t *links;      /* enum network_link, n_nodes × n_nodes */
	unsigned *n_digests; /* from the one to the other while digests have faults, likewise */
	int error;
};

/* 0, -EINVAL (no nodes, or too many, or too long a tick), -ENOMEM. */
int network_new(const struct network_config *config, struct network **ret);
/* Takes NULL; returns NULL. */
struct network *network_free(struct network *net);

/* 0 or -ENOMEM. Runs whole ticks: up to one more than asked for. */
int network_run(struct network *net, int64_t ns);
int network_run_until(struct network *net, int64_t until_ns);
/* Until one more alert is out, at most so long. 1: it is, 0: none came; -ENOMEM. */
int network_run_until_alert(struct network *net, int64_t ns);

/* ---- what the ranks' half says ---- */

/*
 * The node's digest of one job to its leader and the one that leads next. Node, epoch and number
 * are filled in; the rest is borrowed. As cw_election_publish().
 */
int network_publish(struct network_node *n, struct cw_msg_digest *d);
/* An answer to one that asked; itself, too. */
void network_answer(struct network_node *n, const char *to, const struct cw_message *msg);
/* A message of one that only speaks, to a node that leads. */
int network_say(struct network *net, unsigned from, unsigned to, const struct cw_message *msg);

/* ---- what befalls nodes and links ---- */

/* Its ranks go on unseen. */
void network_kill(struct network *net, unsigned node, enum network_end how);
/* Its daemon starts, with an empty memory and what is on its disk; from any state. */
void network_start(struct network *net, unsigned node);
void network_hold(struct network *net, unsigned node);
void network_go_on(struct network *net, unsigned node);
/* Only its leading half starts anew. */
void network_restart_leader(struct network *net, unsigned node);
/*
 * From now on it is of the version before, or of today: what it sends and gets is without what that
 * version does not know. Before the first run, or with network_kill() and network_start() around.
 */
void network_set_old(struct network *net, unsigned node, bool is_old);
/* In both directions. Joined again after a cut, they meet at once. */
void network_set_link(struct network *net, unsigned a, unsigned b, enum network_link how);
/* With all others. */
void network_set_links_of(struct network *net, unsigned node, enum network_link how);

/* ---- what came of it ---- */

/* Who leads the job by its own account; -1 = nobody, -2 = more than one. Of any one job. */
int network_leader(const struct network *net);
/* The one job a node leads; NULL = none. */
const struct cw_job *network_job(const struct network *net, unsigned node);
/* What the node has on disk of an incident; NULL = nothing. */
const struct network_bundle *network_bundle(const struct network *net, unsigned node,
					    const char *id);
