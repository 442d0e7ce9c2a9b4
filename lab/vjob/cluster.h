/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in memory, in virtual time, without processes. Ranks run the programs of a scenario.
 * Their devices run the enqueued work with NCCL's semantics: ops of a comm run in order, and
 * streams block. A collective waits for all its members, or ends as its data move
 * (docs/lab/suite.md). We keep an agent's view of each rank, and daemons report this view
 * (cluster_digest_ranks()).
 *
 * The cluster is deterministic: the same scenario and seed give the same result.
 */
#pragma once

#include "lab/suite/scenario/scenario.h"
#include "model/arena.h"
#include "proto/messages.h"

struct cluster;
struct json_t;

/* The beginning of a scenario on the watcher's clock. The times in the scenario count from here. */
#define CLUSTER_ORIGIN_NS (INT64_C(1000) * 1000000000)
/* The user of the ranks' processes. */
#define CLUSTER_UID 1000u

/*
 * Makes a cluster whose job begins at start_ns of the watcher's clock. Returns 0. -EINVAL: the
 * scenario makes no sense, for example because a partition does not fit; err has a sentence, and
 * *ret is NULL.
 */
int cluster_new(const struct suite_scenario *s, int64_t start_ns, struct cw_err *err,
		struct cluster **ret);
struct cluster *cluster_free(struct cluster *c);

/*
 * Processes all events up to this time. Returns 0; -ENOMEM; -EINVAL: a program made a forbidden
 * call.
 */
int cluster_run(struct cluster *c, int64_t until_ns);

/* ---- the reports of a node's daemon (cluster_digest.c) ---- */

enum cluster_daemon {
	CLUSTER_DAEMON_RUNS = 0,
	CLUSTER_DAEMON_HELD,    /* stopped; it keeps its old knowledge */
	CLUSTER_DAEMON_KILLED,  /* killed; it will be started again */
	CLUSTER_DAEMON_GOODBYE, /* killed, after it has announced its end to its peers */
	CLUSTER_DAEMON_LOST,    /* lost with its machine */
};

uint32_t cluster_n_nodes(const struct cluster *c);
enum cluster_daemon cluster_daemon(const struct cluster *c, uint32_t node);
/*
 * Sets the state of the node's daemon for this long (SUITE_FOREVER: permanently). After a kill or a
 * goodbye, the daemon starts with an empty memory.
 */
void cluster_quieten(struct cluster *c, uint32_t node, enum cluster_daemon daemon, int64_t for_ns);
/* Returns how far the scenario has set the wall clocks forward. */
int64_t cluster_wall_ahead_ns(const struct cluster *c);
/* Returns the number of ended ranks on the node. */
uint32_t cluster_n_ended(const struct cluster *c, uint32_t node);
/*
 * Samples the node's ranks now, and converts the samples to the contents of a digest, with ages
 * instead of times (digest/digest.c). *ret is in the arena and valid until the next call. Returns 0
 * or -ENOMEM.
 */
int cluster_digest_ranks(struct cluster *c, uint32_t node, struct cw_arena *arena,
			 struct cw_msg_rank **ret, uint32_t *ret_n);
/*
 * Switches to recording, if the scenario allows it. Then the agent's own code writes the ranks'
 * calls into flight records, and the nodes' reports come from these. *ret: true if it has switched.
 * It does not switch with CUDA graphs, many ranks, or fast-forwarding. Call it before the first
 * event. Returns 0 or -ENOMEM.
 */
int cluster_record(struct cluster *c, bool *ret);
/*
 * Returns the windows (lists of recent ops) that the request asks for (digest/window.c). Returns 0
 * or -ENOMEM.
 */
int cluster_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		    struct cw_arena *arena, struct cw_msg_window **ret, uint32_t *ret_n);

/*
 * True if a scenario that fast-forwards may skip from here: all ranks make calls, none is dead,
 * stopped or in a long wait, and every due fault has happened.
 */
bool cluster_is_well(const struct cluster *c);
/* Returns the time of the next fault, or SUITE_FOREVER. */
int64_t cluster_next_fault_ns(const struct cluster *c);
/*
 * Skips a stretch of ns (whole seconds). All state stays, but its times move by ns. The counters of
 * each comm advance at their previous pace.
 */
void cluster_fast_forward(struct cluster *c, int64_t ns);

/*
 * Returns the time until which each rank continues its current activity: hosts wait or work, loops
 * iterate. SUITE_FOREVER: no rank will change its activity any more. We do not foresee faults at
 * calls.
 */
int64_t cluster_rests_until(const struct cluster *c);

/*
 * True if the daemons have nothing to see: no rank is alive any more, or no rank has made an NCCL
 * call yet.
 */
bool cluster_is_over(const struct cluster *c);
/* Returns the time when the launcher restarted the job; 0 = never. */
int64_t cluster_restart_ns(const struct cluster *c);
/*
 * Returns the time of the scenario's first fault; 0 = it has not happened yet. *ret_all: all faults
 * have happened.
 */
int64_t cluster_fault_ns(const struct cluster *c, bool *ret_all);
/* Returns the time when a fault last struck the rank; 0 = never. */
int64_t cluster_hit_ns(const struct cluster *c, uint32_t rank);
/*
 * Returns the time when the rank's calls, or its device's progress, last moved; 0 = it has ended.
 */
int64_t cluster_moved_ns(const struct cluster *c, uint32_t rank);
/*
 * Returns the start of the longest current wait of a living rank inside a call. SUITE_FOREVER = no
 * rank waits.
 */
int64_t cluster_waiting_since_ns(const struct cluster *c);
/*
 * Returns the time since which the rank has been stuck in a call; 0 = it is not stuck. It is the
 * last movement of the rank's calls or of its device's progress. For an ended rank, we return the
 * state at its end. *ret_until_ns: now, or the rank's end.
 */
int64_t cluster_stands_since_ns(const struct cluster *c, uint32_t rank, int64_t *ret_until_ns);
/*
 * Sets ret[n_ranks]. Ranks that communicators connect, directly or indirectly, get the same number.
 */
void cluster_groups(const struct cluster *c, uint32_t *ret);
/*
 * Returns the complete state at this moment, to check reports against it (cluster_truth.c). The
 * caller owns it. NULL = out of memory.
 */
struct json_t *cluster_truth(const struct cluster *c);
