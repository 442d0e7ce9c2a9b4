/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in memory, in virtual time, without processes. Ranks run the programs of a scenario.
 * Their devices run the enqueued work with NCCL's semantics: per-comm order, and streams that
 * block. A collective waits for all its members, or ends as its data move (docs/lab/suite.md). We
 * keep an agent's view of each rank, which daemons report (cluster_digest_ranks()).
 *
 * Deterministic: the same scenario and seed give the same result.
 */
#pragma once

#include "lab/suite/scenario/scenario.h"
#include "model/arena.h"
#include "proto/messages.h"

struct cluster;
struct json_t;

/* The beginning of scenarios on the watcher's clock; their times count from here. */
#define CLUSTER_ORIGIN_NS (INT64_C(1000) * 1000000000)
/* The user of their processes. */
#define CLUSTER_UID 1000u

/*
 * The job begins at start_ns of the watcher's clock. NULL in *ret and -EINVAL with a sentence in
 * err if the scenario makes no sense (a partition that does not fit, …), -ENOMEM.
 */
int cluster_new(const struct suite_scenario *s, int64_t start_ns, struct cw_err *err,
		struct cluster **ret);
struct cluster *cluster_free(struct cluster *c);

/* Processes all events up to this time. 0 or -ENOMEM; -EINVAL: a program made a forbidden call. */
int cluster_run(struct cluster *c, int64_t until_ns);

/* ---- the reports of a node's daemon (cluster_digest.c) ---- */

enum cluster_daemon {
	CLUSTER_DAEMON_RUNS = 0,
	CLUSTER_DAEMON_HELD,    /* stopped: it keeps its old knowledge */
	CLUSTER_DAEMON_KILLED,  /* it will be started again */
	CLUSTER_DAEMON_GOODBYE, /* likewise, after it announced this to its peers */
	CLUSTER_DAEMON_LOST,    /* with its machine */
};

uint32_t cluster_n_nodes(const struct cluster *c);
enum cluster_daemon cluster_daemon(const struct cluster *c, uint32_t node);
/*
 * From now on, for this long (SUITE_FOREVER), the node's daemon is in this state. After a kill or a
 * goodbye, a daemon starts with an empty memory.
 */
void cluster_quieten(struct cluster *c, uint32_t node, enum cluster_daemon daemon, int64_t for_ns);
/* How far the scenario set wall clocks forward. */
int64_t cluster_wall_ahead_ns(const struct cluster *c);
/* Number of ended ranks on the node. */
uint32_t cluster_n_ended(const struct cluster *c, uint32_t node);
/*
 * Samples the node's ranks at this instant and converts them to the contents of a digest,
 * ages included (digest/digest.c). *ret lies in the arena and is valid until the next call. 0
 * or -ENOMEM.
 */
int cluster_digest_ranks(struct cluster *c, uint32_t node, struct cw_arena *arena,
			 struct cw_msg_rank **ret, uint32_t *ret_n);
/*
 * Switches to recording, if the scenario allows it; call it before the first event. From then on,
 * the agent's own code writes ranks' calls into flight records, and nodes' reports come from these.
 * *ret: true if it switched; never with CUDA graphs, many ranks, or fast-forwarding. 0 or -ENOMEM.
 */
int cluster_record(struct cluster *c, bool *ret);
/* The windows that the request asks for (digest/window.c). 0 or -ENOMEM. */
int cluster_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		    struct cw_arena *arena, struct cw_msg_window **ret, uint32_t *ret_n);

/*
 * For scenarios that fast-forward: true if all ranks make calls, none is dead, stopped or in a long
 * wait, and every due fault has happened.
 */
bool cluster_is_well(const struct cluster *c);
/* The next fault's time, or SUITE_FOREVER. */
int64_t cluster_next_fault_ns(const struct cluster *c);
/*
 * Skips a stretch of ns (whole seconds): all state stays, that much later, and the counters of each
 * comm advance at their previous pace.
 */
void cluster_fast_forward(struct cluster *c, int64_t ns);

/*
 * Until when only the current activities continue: hosts that wait or work, loops that
 * iterate (SUITE_FOREVER: no rank will do anything any more). Does not foresee faults at
 * calls. 0 or -ENOMEM.
 */
int cluster_rests_until(const struct cluster *c, int64_t *ret_ns);

/* True if no rank is alive any more, or none has made an NCCL call yet: there is nothing to see. */
bool cluster_is_over(const struct cluster *c);
/* When the launcher restarted the job; 0 = never. */
int64_t cluster_restart_ns(const struct cluster *c);
/* When the first fault of the scenario happened; 0 = not yet. *ret_all: all have happened. */
int64_t cluster_fault_ns(const struct cluster *c, bool *ret_all);
/* When a fault last struck the rank; 0 = never. */
int64_t cluster_hit_ns(const struct cluster *c, uint32_t rank);
/* When the rank's calls, or its device's progress, last moved; 0 = it has ended. */
int64_t cluster_moved_ns(const struct cluster *c, uint32_t rank);
/*
 * Start of the longest current wait inside a call among living ranks; SUITE_FOREVER = no
 * rank waits.
 */
int64_t cluster_waiting_since_ns(const struct cluster *c);
/*
 * Since when the rank has been stuck in a call: the last movement of its calls, or of its device's
 * progress; for an ended rank, before its end. 0 = it is not stuck. *ret_until_ns: now, or its end.
 */
int64_t cluster_stands_since_ns(const struct cluster *c, uint32_t rank, int64_t *ret_until_ns);
/*
 * Ranks with a direct or indirect connection by communicators get the same number in ret[n_ranks].
 */
void cluster_groups(const struct cluster *c, uint32_t *ret);
/*
 * The complete state at this moment, for checks of the reports (cluster_truth.c); the caller owns
 * it. NULL: out of memory.
 */
struct json_t *cluster_truth(const struct cluster *c);
