/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round of digests: one for each job of the table, or only for the jobs where something
 * happened that must not wait. Loop thread only.
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
	const struct cw_absent *absent;       /* borrowed; NULL = none */
	const struct cw_untracked *untracked; /* borrowed; NULL = none */
	uint64_t round;                       /* rounds begun */
	uint64_t number;                      /* digests ever made */
	int64_t held_ns; /* now_ns less the daemon's awake clock: how long it was held up */
};

/* Processes without a label yet are left out. The callback must not change the table. */
void cw_digest_round(struct cw_digest_rounds *rounds, struct cw_process *table, bool only_urgent,
		     int64_t now_ns);
