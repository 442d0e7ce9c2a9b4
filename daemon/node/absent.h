/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks without a record (docs/design/node.md#ranks-without-a-record): when the making of a
 * communicator is stuck and ranks are missing, the job's leader asks all nodes whether such a rank
 * runs there. A node then looks through /proc, in a child, now and again while it is asked; what it
 * finds goes into its digests as ranks that are in no communicator, with the liveness and headway
 * of their processes.
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

/* Jobs searched for at once: users share them (identity/shares.h). */
#define CW_ABSENT_MAX_SEARCHES 16u
/* Nobody has asked for so long: it is forgotten. Leaders ask more often. */
#define CW_ABSENT_KEEP_NS (30 * CW_NS_PER_S)
/* One job's processes are looked for at most so often, … */
#define CW_ABSENT_SCAN_EVERY_NS (10 * CW_NS_PER_S)
/* … and a look may take so long: /proc of a process that is stuck in the kernel may hang. */
#define CW_ABSENT_SCAN_MS 5000u

struct cw_absent_config {
	struct event_base *base;
	const struct cw_clock *clock;
	const char *socket_path;         /* of this daemon's agents; borrowed */
	struct cw_process *const *table; /* who registered after all is not absent */
};

int cw_absent_new(const struct cw_absent_config *config, struct cw_absent **ret);
/* Takes NULL; returns NULL. */
struct cw_absent *cw_absent_free(struct cw_absent *a);

/* A leader asks. False: refused (no label, a key that is not that label's, or too many). */
bool cw_absent_search(struct cw_absent *a, const struct cw_msg_rank_search *q);
/* Looks at what was found, and anew at /proc where it is due. Call it about once a second. */
void cw_absent_tick(struct cw_absent *a);

/* The i-th job with ranks that were found; NULL beyond the last. Borrowed until the next tick. */
const struct cw_job_id *cw_absent_job(const struct cw_absent *a, unsigned i);
/* Its ranks, in the arena, for a digest. 0 or -ENOMEM. */
int cw_absent_ranks(const struct cw_absent *a, const struct cw_job_id *job, struct cw_arena *arena,
		    struct cw_msg_rank *ret, uint32_t max, uint32_t *ret_n);
/* For evidence; as cw_node_find() and cw_node_is_of_another(). */
bool cw_absent_find(const struct cw_absent *a, pid_t pid, uint64_t start_ticks,
		    struct cw_node_process *ret);
bool cw_absent_is_of_another(const struct cw_absent *a, pid_t pid, uint64_t start_ticks,
			     const struct cw_job_id *job);
