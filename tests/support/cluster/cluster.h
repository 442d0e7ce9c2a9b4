/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network of up to 24 daemons in memory (lab/vnet/network.h), and a job of eight or so ranks on
 * them that trains, hangs or dies on command. Nothing happens outside of cluster_run().
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/vnet/network.h"
#include "record/record_layout.h"

#define CLUSTER_MAX_NODES 24u
#define CLUSTER_MAX_ALERTS 16u
#define CLUSTER_MAX_RANKS 64u
#define CLUSTER_JOB_HASH UINT64_C(0x7e57)
#define CLUSTER_LABEL "job-1"
#define CLUSTER_UID 1000u

enum cluster_fault {
	FAULT_NONE = 0,
	FAULT_NEVER_ENTERED, /* the culprit stays outside; shows no host activity */
	FAULT_MISMATCH,      /* the culprit calls with another count */
	FAULT_KILLED,        /* the culprit died before entering */
	FAULT_WRONG_REDOP,   /* the culprit calls with another operator once; all go on */
	FAULT_NEVER_CALLED,  /* the job starts anew, and the culprit never gets as far as NCCL */
	FAULT_LEFT_MESSAGE,  /* the culprit leaves out a receive from the rank before it; all go on
			      */
	FAULT_NODE_LOST, /* no rank of the node that is the culprit enters: cluster_kill() it too */
};

struct cluster_alert {
	unsigned node; /* the sending node */
	int64_t at_ns;
	char id[CW_INCIDENT_ID_LEN];
	char verdict_class[32];
	int culprit; /* rank; -1 = none or several */
	json_t *doc;
};

struct cluster {
	struct network *net;
	struct network_node *nodes; /* the network's */
	struct network_ranks ranks;
	int64_t now_ns;
	unsigned n_nodes, n_ranks;
	unsigned first_node, n_rank_nodes; /* which have ranks; n_rank_nodes 0 = all */
	/* the job */
	uint32_t uid;
	struct cluster *guest; /* another user's job on the same nodes; see cluster_add_guest() */
	uint64_t seq;          /* collectives completed by all */
	int64_t step_ns, fault_ns;
	int64_t step_every_ns;
	uint64_t fault_seq;    /* the wrong call, in a fault that holds up no rank; 0 = none */
	unsigned fault_rank;   /* the rank that made it */
	uint64_t ops_recorded; /* a rank's last ops that its record still holds */
	uint64_t hash[2];      /* rolling, of the others and of the culprit */
	struct cw_rec_checkpoint checkpoints[2][CW_REC_CHECKPOINTS];
	enum cluster_fault fault;
	unsigned culprit;
	int64_t cpu_ns, evaluation_cost_ns; /* CPU time used, and the time that each look takes */
	uint32_t iteration_members;         /* of leaders started from now on */
	bool is_gone;                       /* the job has ended */
	/* Ranks that end, beside the fault: sets what their node tells of it. NULL = none do. */
	void (*end)(const struct cluster *c, unsigned rank, struct cw_msg_rank *r);
	bool alerts_fail;            /* no receiver takes them */
	bool evidence_mute;          /* nodes do not answer evidence requests */
	const char *suppress_reason; /* why alerts are suppressed; NULL = they are not */
	/* Output over the life of all leaders, as a store on disk would keep it. */
	struct cluster_alert alerts[CLUSTER_MAX_ALERTS];
	unsigned n_alerts;
};

void cluster_init(struct cluster *c, unsigned n_nodes, unsigned n_ranks);
void cluster_fini(struct cluster *c);
/*
 * The job of this user, of the same label, runs on the nodes of c as well: guest is borrowed, and
 * of it only cluster_fault() and cluster_heal() are used.
 */
void cluster_add_guest(struct cluster *c, struct cluster *guest, uint32_t uid);
void cluster_run(struct cluster *c, double seconds);
/* Runs until an alert is out, at most this long. False: none came. */
bool cluster_run_until_alert(struct cluster *c, double seconds);
void cluster_fault(struct cluster *c, enum cluster_fault fault, unsigned culprit);
void cluster_heal(struct cluster *c);
/* The daemon disappears: its connections break. The ranks of its node go on unseen. */
void cluster_kill(struct cluster *c, unsigned node);
/* It starts anew and connects to the nodes that are up. Its ranks still run. */
void cluster_revive(struct cluster *c, unsigned node);
/* The daemon is replaced by one of a later version: at once, as a restart. */
void cluster_upgrade(struct cluster *c, unsigned node);
/* A stopped daemon: connected, but silent. Messages to it wait in its kernel. */
void cluster_freeze(struct cluster *c, unsigned node);
/* It goes on. */
void cluster_thaw(struct cluster *c, unsigned node);
void cluster_cut(struct cluster *c, unsigned a, unsigned b);
/* They are connected again. */
void cluster_join(struct cluster *c, unsigned a, unsigned b);
/* The leading half starts anew, as after a restart; it still knows the alerts it has sent. */
void cluster_restart(struct cluster *c, unsigned node);

/* The node that this node takes for the leader of the job; NULL = it has no ranks of it. */
const char *cluster_elected(const struct cluster *c, unsigned node);
/* The node that leads the job by its own account; -1 = no node, -2 = more than one. */
int cluster_leader(const struct cluster *c);
/* The bundle of an incident on the node's disk; NULL = none. */
const struct fake_store_bundle *cluster_bundle(const struct cluster *c, unsigned node,
					       const char *id);
/* The one job a node leads; NULL = none. */
const struct cw_job *cluster_job(const struct cluster *c, unsigned node);
