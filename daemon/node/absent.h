/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for ranks without a record (docs/design/node.md#ranks-without-a-record).
 *
 * When a communicator's init is stuck and ranks are missing, the job's leader asks every node
 * whether such a rank runs there. As long as the leader keeps asking, the node scans /proc from
 * time to time, in a child. The ranks found enter the node's digests as members of no communicator,
 * with the liveness and headway of their processes.
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

struct cw_absent;
struct cw_job_id;
struct cw_process;

/* Concurrent searches, one per job. Users share them fairly (identity/shares.h). */
#define CW_ABSENT_MAX_SEARCHES 16u
/* A search ends this long after the last request. Leaders ask more often. */
#define CW_ABSENT_KEEP_NS (30 * CW_NS_PER_S)
/* Minimum time between two scans for one job. */
#define CW_ABSENT_SCAN_EVERY_NS (10 * CW_NS_PER_S)
/* Deadline of one scan: reading /proc of a process that is stuck in the kernel may hang. */
#define CW_ABSENT_SCAN_MS 5000u

struct cw_absent_config {
	struct event_base *base;
	const struct cw_clock *clock;
	const char *socket_path;         /* our agent socket; borrowed */
	struct cw_process *const *table; /* a registered process is no longer absent */
};

int cw_absent_new(const struct cw_absent_config *config, struct cw_absent **ret);
/* Takes NULL; returns NULL. */
struct cw_absent *cw_absent_free(struct cw_absent *a);

/*
 * Starts or prolongs a search for a leader. False: refused (no label, a key that does not match the
 * label, or too many searches).
 */
bool cw_absent_search(struct cw_absent *a, const struct cw_msg_rank_search *q);
/*
 * Refreshes the ranks found, and scans /proc again for each search that is due. Call it about once
 * a second.
 */
void cw_absent_tick(struct cw_absent *a);

/* The i-th job with at least one rank found; NULL beyond the last. Borrowed until the next tick. */
const struct cw_job_id *cw_absent_job(const struct cw_absent *a, unsigned i);
/*
 * Fills ret with at most max of the job's ranks, for a digest; their strings are in the arena.
 * Returns 0 or -ENOMEM.
 */
int cw_absent_ranks(const struct cw_absent *a, const struct cw_job_id *job, struct cw_arena *arena,
		    struct cw_msg_rank *ret, uint32_t max, uint32_t *ret_n);
/* Evidence uses these two. They work as cw_node_find() and cw_node_is_of_another() do. */
bool cw_absent_find(const struct cw_absent *a, pid_t pid, uint64_t start_ticks,
		    struct cw_node_process *ret);
bool cw_absent_is_of_another(const struct cw_absent *a, pid_t pid, uint64_t start_ticks,
			     const struct cw_job_id *job);
