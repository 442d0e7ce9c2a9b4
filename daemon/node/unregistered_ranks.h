/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for ranks without a record (docs/design/daemon.md#ranks-without-a-record).
 *
 * When a communicator's init is stuck and ranks are missing, the job's leader asks every node
 * whether such a rank runs there. As long as the leader keeps asking, the node scans /proc from
 * time to time, in a child. The ranks that it finds enter the node's digests as members of no
 * communicator, with the liveness and host activity of their processes.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "daemon/node/node.h"
#include "model/arena.h"
#include "proto/messages.h"

struct cw_unregistered_ranks;
struct cw_job_id;
struct cw_process;

/* The limit of concurrent searches, one per job. Users share them fairly (identity/quota.h). */
#define CW_UNREGISTERED_RANKS_MAX_SEARCHES 16u
/* A search ends this long after the last request. Leaders ask more often. */
#define CW_UNREGISTERED_RANKS_KEEP_NS (30 * CW_NS_PER_S)
/* The minimum time between two scans for one job. */
#define CW_UNREGISTERED_RANKS_SCAN_EVERY_NS (10 * CW_NS_PER_S)
/* The deadline of one scan. Reading /proc of a process that is stuck in the kernel may hang. */
#define CW_UNREGISTERED_RANKS_SCAN_MS 5000u

struct cw_unregistered_ranks_config {
	struct event_base *base;
	const struct cw_clock *clock;
	const char *socket_path;         /* our agent socket; borrowed */
	struct cw_process *const *table; /* we drop a process from a search once it is registered */
};

int cw_unregistered_ranks_new(const struct cw_unregistered_ranks_config *config,
			      struct cw_unregistered_ranks **ret);
/* Takes NULL; returns NULL. */
struct cw_unregistered_ranks *cw_unregistered_ranks_free(struct cw_unregistered_ranks *u);

/*
 * Starts or prolongs a search for a leader. False if we refuse: the label is missing, the key does
 * not match the label, or there are too many searches.
 */
bool cw_unregistered_ranks_search(struct cw_unregistered_ranks *u,
				  const struct cw_msg_rank_search *q);
/*
 * Refreshes the ranks that we have found, and scans /proc again for each search that is due. Call
 * it about once a second.
 */
void cw_unregistered_ranks_tick(struct cw_unregistered_ranks *u);

/*
 * Returns the i-th job with at least one rank found; NULL beyond the last. Borrowed until the next
 * tick.
 */
const struct cw_job_id *cw_unregistered_ranks_job(const struct cw_unregistered_ranks *u,
						  unsigned i);
/*
 * Fills ret with at most max of the job's ranks, for a digest; their strings are in the arena.
 * Returns 0 or -ENOMEM.
 */
int cw_unregistered_ranks_list(const struct cw_unregistered_ranks *u, const struct cw_job_id *job,
			       struct cw_arena *arena, struct cw_msg_rank *ret, uint32_t max,
			       uint32_t *ret_n);
/*
 * Like cw_node_find() and cw_node_is_of_another(), but for the ranks found here. Evidence uses
 * them.
 */
bool cw_unregistered_ranks_find(const struct cw_unregistered_ranks *u, pid_t pid,
				uint64_t start_ticks, struct cw_node_process *ret);
bool cw_unregistered_ranks_is_of_another(const struct cw_unregistered_ranks *u, pid_t pid,
					 uint64_t start_ticks, const struct cw_job_id *job);
