/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches for ranks without a record (docs/design/daemon.md#ranks-without-a-record).
 *
 * If the init of a communicator is stuck and ranks are missing, the job's leader asks every node
 * whether such a rank runs there. As long as the leader repeats its request, the node scans /proc
 * from time to time, in a child. The ranks that it finds are in the node's digests as members of no
 * communicator. The digest has the liveness and host activity of their processes.
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

/*
 * Maximum number of searches at the same time, one per job. Users share them by quotas
 * (identity/quota.h).
 */
#define CW_UNREGISTERED_RANKS_MAX_SEARCHES 16u
/*
 * A search ends this long after the leader's last request. Leaders repeat their requests more
 * often.
 */
#define CW_UNREGISTERED_RANKS_KEEP_NS (30 * CW_NS_PER_S)
/* Shortest time between two scans for one job. */
#define CW_UNREGISTERED_RANKS_SCAN_EVERY_NS (10 * CW_NS_PER_S)
/* Deadline of a scan. Reading /proc of a process that is stuck in the kernel may hang. */
#define CW_UNREGISTERED_RANKS_SCAN_MS 5000u

struct cw_unregistered_ranks_config {
	struct event_base *base;
	struct cw_fork_server *forks; /* has cw_unregistered_scan_child(); borrowed */
	const struct cw_clock *clock;
	const char *socket_path; /* path of our agent socket; borrowed */
	/* The node's processes: if a process registers, we drop it from its search. */
	struct cw_process *const *table;
};

int cw_unregistered_ranks_new(const struct cw_unregistered_ranks_config *config,
			      struct cw_unregistered_ranks **ret);
/* Takes NULL; returns NULL. */
struct cw_unregistered_ranks *cw_unregistered_ranks_free(struct cw_unregistered_ranks *u);

/*
 * Starts or prolongs a search, at the request of a leader. Returns false if we refuse it: the label
 * is missing, the key does not match the label, or there are too many searches.
 */
bool cw_unregistered_ranks_search(struct cw_unregistered_ranks *u,
				  const struct cw_msg_rank_search *q);
/*
 * Refreshes the ranks that we have found. Starts the scans whose time has come. Call this about
 * once a second.
 */
void cw_unregistered_ranks_tick(struct cw_unregistered_ranks *u);

/*
 * Returns the i-th job for which we have found ranks; NULL = there are fewer. Borrowed until the
 * next tick.
 */
const struct cw_job_id *cw_unregistered_ranks_job(const struct cw_unregistered_ranks *u,
						  unsigned i);
/*
 * Fills ret with at most max ranks of the job, for a digest. The arena has their strings. Returns 0
 * or -ENOMEM.
 */
int cw_unregistered_ranks_list(const struct cw_unregistered_ranks *u, const struct cw_job_id *job,
			       struct cw_arena *arena, struct cw_msg_rank *ret, uint32_t max,
			       uint32_t *ret_n);
/*
 * Like cw_node_find() and cw_node_is_of_another(), but for the ranks that a search has found.
 * Evidence uses these functions.
 */
bool cw_unregistered_ranks_find(const struct cw_unregistered_ranks *u, pid_t pid,
				uint64_t start_ticks, struct cw_node_process *ret);
bool cw_unregistered_ranks_is_of_another(const struct cw_unregistered_ranks *u, pid_t pid,
					 uint64_t start_ticks, const struct cw_job_id *job);
