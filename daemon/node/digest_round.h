/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes digests for the jobs on this node. A round makes one digest per job: for each job of the
 * table, or only for jobs with an urgent event. Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/node/node.h"
#include "daemon/process/process.h"

struct cw_digest_rounds {
	const char *node; /* name of this node; borrowed */
	uint64_t epoch;
	cw_node_digest_fn on_digest;
	void *user;
	/* Ranks that never called NCCL; borrowed; NULL = none. */
	const struct cw_unregistered_ranks *unregistered;
	/*
	 * Rank processes that we do not watch, because the table of processes is full; borrowed;
	 * NULL = none.
	 */
	const struct cw_untracked *untracked;
	uint64_t round; /* number of rounds begun */
	/* Number of digests made since the start. */
	uint64_t number;
	int64_t held_ns; /* total time that the daemon did not run: now_ns minus its awake clock */
};

/*
 * Makes one round of digests. Skips processes whose job's label is not known yet. The callback must
 * not change the table.
 */
void cw_digest_round(struct cw_digest_rounds *rounds, struct cw_process *table, bool only_urgent,
		     int64_t now_ns);
