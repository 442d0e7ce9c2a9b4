/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network of up to 24 daemons in memory (lab/vnet/network.h), and a job of about eight ranks on
 * it. The job trains, hangs or dies as the test commands. Time passes only in cluster_run().
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
	FAULT_NEVER_ENTERED, /* the culprit stays outside NCCL and shows no host activity */
	FAULT_MISMATCH,      /* the culprit calls with another count */
	FAULT_KILLED,        /* the culprit died before entering */
	FAULT_WRONG_REDOP,   /* the culprit makes one call with another operator; all ranks go on */
	FAULT_NEVER_CALLED,  /* the job starts again, and the culprit never reaches NCCL */
	/* the culprit omits a receive from the rank before it; all ranks go on */
	FAULT_LEFT_MESSAGE,
	/* no rank of the node `culprit` enters; the test must also call cluster_kill() */
	FAULT_NODE_LOST,
};

struct cluster_alert {
	unsigned node; /* the sending node */
	int64_t at_ns;
	char id[CW_INCIDENT_ID_LEN];
	char verdict_class[32];
	int culprit; /* rank; -1 = no culprit, or several */
	json_t *doc;
};

struct cluster {
	struct network *net;
	struct network_node *nodes; /* the nodes of the network */
	struct network_ranks ranks;
	int64_t now_ns;
	unsigned n_nodes, n_ranks;
	unsigned first_node, n_rank_nodes; /* nodes that have ranks; n_rank_nodes 0 = all */
	/* the job */
	uint32_t uid;
	struct cluster *guest; /* another user's job on the same nodes (cluster_add_guest()) */
	uint64_t seq;          /* number of collectives that all ranks have completed */
	int64_t step_ns, fault_ns;
	int64_t step_every_ns;
	/* number of the wrong call, in a fault that holds up no rank; 0 = none */
	uint64_t fault_seq;
	unsigned fault_rank;   /* the rank that made it */
	uint64_t ops_recorded; /* number of a rank's last ops that its record still has */
	/* rolling hash of the calls: of the other ranks, and of the culprit */
	uint64_t hash[2];
	struct cw_rec_checkpoint checkpoints[2][CW_REC_CHECKPOINTS];
	enum cluster_fault fault;
	unsigned culprit;
	/* CPU time that leaders have used, and that each evaluation takes */
	int64_t cpu_ns, evaluation_cost_ns;
	/* memberships that a leader evaluates at once; holds for leaders started from now on */
	uint32_t iteration_members;
	bool is_gone; /* the job has ended */
	/*
	 * Sets the facts that a node reports about a rank that ends, independent of the fault. NULL
	 * = no rank ends.
	 */
	void (*end)(const struct cluster *c, unsigned rank, struct cw_msg_rank *r);
	bool alerts_fail;            /* no receiver accepts alerts */
	bool evidence_mute;          /* nodes do not answer evidence requests */
	const char *suppress_reason; /* reason why alerts are suppressed; NULL = they are sent */
	/* The output of all leaders since the start, as a store on disk would have it. */
	struct cluster_alert alerts[CLUSTER_MAX_ALERTS];
	unsigned n_alerts;
};

void cluster_init(struct cluster *c, unsigned n_nodes, unsigned n_ranks);
void cluster_fini(struct cluster *c);
/*
 * Adds the job `guest` of another user, with the same label, to the nodes of c. Borrows guest. The
 * test may call only cluster_fault() and cluster_heal() on it.
 */
void cluster_add_guest(struct cluster *c, struct cluster *guest, uint32_t uid);
void cluster_run(struct cluster *c, double seconds);
/* Runs until a leader sends an alert, for this time at most. Returns false if no alert was sent. */
bool cluster_run_until_alert(struct cluster *c, double seconds);
void cluster_fault(struct cluster *c, enum cluster_fault fault, unsigned culprit);
void cluster_heal(struct cluster *c);
/*
 * Kills a daemon, and its connections break. The ranks on its node go on, but no daemon sees them.
 */
void cluster_kill(struct cluster *c, unsigned node);
/* Starts a killed daemon again. It connects to the nodes that are up. Its ranks still run. */
void cluster_revive(struct cluster *c, unsigned node);
/* Replaces a daemon by one of a later version, as a restart would. */
void cluster_upgrade(struct cluster *c, unsigned node);
/* Stops a daemon. It stays connected but is silent, and messages to it wait in its kernel. */
void cluster_freeze(struct cluster *c, unsigned node);
/* Lets a stopped daemon go on. */
void cluster_thaw(struct cluster *c, unsigned node);
void cluster_cut(struct cluster *c, unsigned a, unsigned b);
/* Connects the two nodes again. */
void cluster_join(struct cluster *c, unsigned a, unsigned b);
/*
 * Starts a node's leader part again, as after a restart. It still knows the alerts that it has
 * sent.
 */
void cluster_restart(struct cluster *c, unsigned node);

/*
 * Returns the node that this node regards as the leader of the job; NULL = the node has no ranks of
 * the job.
 */
const char *cluster_elected(const struct cluster *c, unsigned node);
/*
 * Returns the node that regards itself as the leader of the job; -1 = no node, -2 = more than one.
 */
int cluster_leader(const struct cluster *c);
/* Returns the bundle of an incident on the node's disk; NULL = none. */
const struct fake_store_bundle *cluster_bundle(const struct cluster *c, unsigned node,
					       const char *id);
/* Returns the only job that a node leads; NULL = none. */
const struct cw_job *cluster_job(const struct cluster *c, unsigned node);
