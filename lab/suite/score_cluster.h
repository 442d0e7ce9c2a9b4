/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of faults of the cluster itself. These must not change the answers. */
#pragma once

#include <stdint.h>

#include "lab/suite/scenario/scenario.h"

enum score_cluster_kind {
	SCORE_NODE_AWAY, /* a daemon is killed, cut off or stalled, and comes back */
	SCORE_LEADER_AWAY,
	SCORE_HALVES, /* several nodes are cut off from several others */
	SCORE_DIGESTS,
	SCORE_CLOCKS,
	SCORE_NEWER_VERSION,
	/*
	 * alerts are undelivered or muted, daemons read their configuration again, or a crowd of
	 * jobs appears
	 */
	SCORE_OPERATORS,
	SCORE_CLUSTER__MAX,
};

struct score_cluster {
	uint64_t n, n_missed, n_false_alerts;
};

/* Returns the name, such as "a node is away for a while". */
const char *cw_score_cluster_name(unsigned kind);
/* Returns a bit (1 << kind) for each kind that the scenario has. */
uint32_t cw_score_cluster_kinds(const struct suite_scenario *s);
