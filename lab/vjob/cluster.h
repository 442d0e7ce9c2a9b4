/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in memory, in virtual time, without processes. Ranks run the programs of a scenario.
 * Their devices run the enqueued work with NCCL's semantics: per-comm order, and streams that
 * block. A collective waits for all its members, or ends as its data move (docs/lab/suite.md). We
 * keep an agent's view of each rank, and daemons report this view (cluster_digest_ranks()).
 *
 * Deterministic: the same scenario and seed give the same result.
 */
#pragma once

#include "lab/suite/scenario/scenario.h"
#include "model/arena.h"
#include "proto/messages.h"

struct cluster;
struct json_t;

/* The beginning of scenarios on the watcher's clock. The times in a scenario count from here. */
#define CLUSTER_ORIGIN_NS (INT64_C(1000) * 1000000000)
/* The user of the ranks' processes. */
#define CLUSTER_UID 1000u

/*
 * Makes a cluster whose job begins at start_ns of the watcher's clock. 0, or -EINVAL with
 * a sentence in err and NULL in *ret: the scenario makes no sense (a partition that does not fit,
 * …).
 */
int cluster_new(const struct suite_scenario *s, int64_t start_ns, struct cw_err *err,
		struct cluster **ret);
struct cluster *cluster_free(struct cluster *c);

/* Processes all events up to this time. 0; -ENOMEM; -EINVAL: a program made a forbidden call. */
int cluster_run(struct cluster *c, int64_t until_ns);

/* ---- the reports of a node's daemon (cluster_digest.c) ---- */

enum cluster_daemon {
	CLUSTER_DAEMON_RUNS = 0,
	CLUSTER_DAEMON_HELD,    /* stopped; it keeps its old knowledge */
	CLUSTER_DAEMON_KILLED,  /* killed; it will be started again */
	CLUSTER_DAEMON_GOODBYE, /* like KILLED, but it has announced this to its peers */
	CLUSTER_DAEMON_LOST,    /* lost with its machine */
};

uint32_t cluster_n_nodes(const struct cluster *c);
enum cluster_daemon cluster_daemon(const struct cluster *c, uint32_t node);
/*
 * Sets the state of the node's daemon for this long (SUITE_FOREVER). After a kill or a goodbye, the
 * daemon starts with an empty memory.
 */
void cluster_quieten(struct cluster *c, uint32_t node, enum cluster_daemon daemon, int64_t for_ns);
/* Returns how far the scenario has set the wall clocks forward. */
int64_t cluster_wall_ahead_ns(const struct cluster *c);
/* Returns the number of ended ranks on the node. */
uint32_t cluster_n_ended(const struct cluster *c, uint32_t node);
/*
 * Samples the node's ranks at this instant and converts them to the contents of a digest, ages
 * included (digest/digest.c). *ret is in the arena and valid until the next call. 0 or -ENOMEM.
 */
int cluster_digest_ranks(struct cluster *c, uint32_t node, struct cw_arena *arena,
			 struct cw_msg_rank **ret, uint32_t *ret_n);
/*
 * Switches to recording, if the scenario allows it. Call it before the first event. From then on,
 * the agent's own code writes the ranks' calls into flight records, and the nodes' reports come
 * from these. *ret: true if it has switched. It does not switch with CUDA graphs, many ranks, or
 * fast-forwarding. 0 or -ENOMEM.
 */
int cluster_record(struct cluster *c, bool *ret);
/* Returns the windows that the request asks for (digest/window.c). 0 or -ENOMEM. */
int cluster_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		    struct cw_arena *arena, struct cw_msg_window **ret, uint32_t *ret_n);

/*
 * For scenarios that fast-forward. True if all ranks make calls, none is dead, stopped or in a long
 * wait, and every due fault has happened.
 */
bool cluster_is_well(const struct cluster *c);
/* Returns the time of the next fault, or SUITE_FOREVER. */
int64_t cluster_next_fault_ns(const struct cluster *c);
/*
 * Skips a stretch of ns (whole seconds). All state stays, but its times are later by ns. The
 * counters of each comm advance at their previous pace.
 */
void cluster_fast_forward(struct cluster *c, int64_t ns);

/*
 * Finds the time until which only the current activities continue: hosts wait or work, loops
 * iterate. SUITE_FOREVER: no rank will change its activity any more. Does not foresee faults at
 * calls.
 */
int64_t cluster_rests_until(const struct cluster *c);

/*
 * True if no rank is alive any more, or no rank has made an NCCL call yet. Then there is nothing to
 * see.
 */
bool cluster_is_over(const struct cluster *c);
/* Returns the time when the launcher restarted the job; 0 = never. */
int64_t cluster_restart_ns(const struct cluster *c);
/*
 * Returns the time of the scenario's first fault; 0 = not yet. *ret_all: all faults have happened.
 */
int64_t cluster_fault_ns(const struct cluster *c, bool *ret_all);
/* Returns the time when a fault last struck the rank; 0 = never. */
int64_t cluster_hit_ns(const struct cluster *c, uint32_t rank);
/*
 * Returns the time when the rank's calls, or its device's progress, last moved; 0 = it has ended.
 */
int64_t cluster_moved_ns(const struct cluster *c, uint32_t rank);
/*
 * Returns the start of the longest current wait inside a call among living ranks. SUITE_FOREVER =
 * no rank waits.
 */
int64_t cluster_waiting_since_ns(const struct cluster *c);
/*
 * Returns since when the rank has been stuck in a call; 0 = it is not stuck. This is the last
 * movement of its calls or of its device's progress. For an ended rank, it is as of its end.
 * *ret_until_ns: now, or its end.
 */
int64_t cluster_stands_since_ns(const struct cluster *c, uint32_t rank, int64_t *ret_until_ns);
/*
 * Gives ranks that communicators connect, directly or indirectly, the same number in ret[n_ranks].
 */
void cluster_groups(const struct cluster *c, uint32_t *ret);
/*
 * Returns the complete state at this moment, for checks of the reports (cluster_truth.c). The
 * caller owns it. NULL = out of memory.
 */
struct json_t *cluster_truth(const struct cluster *c);
