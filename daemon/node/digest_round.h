/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One round of digests. It makes a digest for each job in the table, or only for the jobs that have
 * an urgent event. Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/node/node.h"
#include "daemon/process/process.h"

struct cw_digest_rounds {
	const char *node; /* borrowed */
	uint64_t epoch;
	cw_node_digest_fn on_digest;
	void *user;
	const struct cw_unregistered_ranks *unregistered; /* borrowed; NULL = none */
	const struct cw_untracked *untracked;             /* borrowed; NULL = none */
	uint64_t round;                                   /* rounds begun */
	uint64_t number;                                  /* digests made since the start */
	int64_t held_ns; /* time that the daemon did not run: now_ns minus its awake clock */
};

/*
 * Makes a round of digests. Skips processes that have no label yet. The callback must not change
 * the table.
 */
void cw_digest_round(struct cw_digest_rounds *rounds, struct cw_process *table, bool only_urgent,
		     int64_t now_ns);
