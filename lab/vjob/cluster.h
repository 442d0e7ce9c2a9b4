/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster in memory, in virtual time, without processes: ranks run the programs of a scenario,
 * their devices run what they enqueue with NCCL's semantics (per-comm order, streams that block,
 * every collective waits for all its members, or ends as its data move: docs/suite.md), and an
 * agent's view of each rank is kept, of which daemons tell (cluster_tell()).
 *
 * Deterministic: the same scenario and seed give the same.
 */
#pragma once

#include "lab/suite/scenario/scenario.h"
#include "model/arena.h"
#include "proto/messages.h"

struct cluster;
struct json_t;

/* When scenarios begin, on the watcher's clock; the times in them count from here. */
#define CLUSTER_ORIGIN_NS (INT64_C(1000) * 1000000000)
/* Whose processes they are. */
#define CLUSTER_UID 1000u

/*
 * The job begins at start_ns of the watcher's clock. NULL in *ret and -EINVAL with a sentence in
 * err where the scenario makes no sense (a partition that does not fit, …), -ENOMEM.
 */
int cluster_new(const struct suite_scenario *s, int64_t start_ns, struct cw_err *err,
		struct cluster **ret);
struct cluster *cluster_free(struct cluster *c);

/* Lets everything happen up to this time. 0 or -ENOMEM; -EINVAL: a program did what it must not. */
int cluster_run(struct cluster *c, int64_t until_ns);

/* ---- what the daemon of a node tells (cluster_tell.c) ---- */

enum cluster_daemon {
	CLUSTER_DAEMON_RUNS = 0,
	CLUSTER_DAEMON_HELD,    /* stopped: it goes on with what it knew */
	CLUSTER_DAEMON_KILLED,  /* to be started again */
	CLUSTER_DAEMON_GOODBYE, /* likewise, and it has said so */
	CLUSTER_DAEMON_LOST,    /* with its machine */
};

uint32_t cluster_n_nodes(const struct cluster *c);
enum cluster_daemon cluster_daemon(const struct cluster *c, uint32_t node);
/*
 * From now on, for so long (SUITE_FOREVER), this is how the node's daemon is. One that was killed
 * or said goodbye has an empty memory when it begins again.
 */
void cluster_quieten(struct cluster *c, uint32_t node, enum cluster_daemon daemon, int64_t for_ns);
/* By how much wall clocks were set forward. */
int64_t cluster_wall_ahead_ns(const struct cluster *c);
/* How many ranks of the node have ended. */
uint32_t cluster_n_ended(const struct cluster *c, uint32_t node);
/*
 * Reads the node's ranks at this instant and makes of them what a digest says, ages included
 * (digest/digest.c). *ret lies in the arena and is good until the next call. 0 or -ENOMEM.
 */
int cluster_tell(struct cluster *c, uint32_t node, struct cw_arena *arena, struct cw_msg_rank **ret,
		 uint32_t *ret_n);
/*
 * Where the scenario is recorded: from now on, before anything has happened, ranks' calls go into
 * flight records by the agent's own code, and what nodes tell is read out of them. *ret: whether it
 * is so; not with CUDA graphs, many ranks, or leaps. 0 or -ENOMEM.
 */
int cluster_record(struct cluster *c, bool *ret);
/* The windows that the request asks the node for (digest/window.c). 0 or -ENOMEM. */
int cluster_windows(struct cluster *c, uint32_t node, const struct cw_msg_window_request *q,
		    struct cw_arena *arena, struct cw_msg_window **ret, uint32_t *ret_n);

/*
 * For scenarios that leap: everybody makes calls, nobody is dead, stopped or waits for long, every
 * fault whose time has come has happened.
 */
bool cluster_is_well(const struct cluster *c);
/* The next fault's time, or SUITE_FOREVER. */
int64_t cluster_next_fault_ns(const struct cluster *c);
/*
 * A stretch of ns (whole seconds) that is left out: everything is where it was, so much later, and
 * the counters of each comm have gone on as they did before.
 */
void cluster_leap(struct cluster *c, int64_t ns);

/*
 * Until when nothing happens but what goes on now: hosts that wait or work, loops that turn
 * (SUITE_FOREVER: nobody will do anything any more). Faults at calls are not foreseen. 0 or
 * -ENOMEM.
 */
int cluster_rests_until(const struct cluster *c, int64_t *ret_ns);

/* Nobody is alive any more, or nobody has made an NCCL call yet: there is nothing to see. */
bool cluster_is_over(const struct cluster *c);
/* The launcher has started the job anew at this time; 0 = it has not. */
int64_t cluster_restart_ns(const struct cluster *c);
/* When the first fault of the scenario happened; 0 = none has. *ret_all: all of them have. */
int64_t cluster_fault_ns(const struct cluster *c, bool *ret_all);
/* When a fault befell the rank last; 0 = never. */
int64_t cluster_hit_ns(const struct cluster *c, uint32_t rank);
/* When the rank's calls, or what its device has done of them, last moved; 0 = it has ended. */
int64_t cluster_moved_ns(const struct cluster *c, uint32_t rank);
/* Since when the longest wait inside a call lasts, of those who live; SUITE_FOREVER = nobody waits.
 */
int64_t cluster_waiting_since_ns(const struct cluster *c);
/*
 * Since when the rank has stood in a call: when its calls, or what its device has done of them,
 * last moved; of one that has ended: before it ended. 0 = it does not. *ret_until_ns: now, or when
 * it ended.
 */
int64_t cluster_stands_since_ns(const struct cluster *c, uint32_t rank, int64_t *ret_until_ns);
/* Ranks that communicators join, whoever else lies between, have the same number in ret[n_ranks].
 */
void cluster_groups(const struct cluster *c, uint32_t *ret);
/*
 * All that is so at this moment, for those who check what is said of it (cluster_truth.c); the
 * caller's. NULL: out of memory.
 */
struct json_t *cluster_truth(const struct cluster *c);
