/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/score_cluster.h"

static const char *const names[SCORE_CLUSTER__MAX] = {
	[SCORE_NODE_AWAY] = "a node is away for a while",
	[SCORE_LEADER_AWAY] = "a leader is away or starts anew",
	[SCORE_HALVES] = "the network is cut in parts",
	[SCORE_DIGESTS] = "digests late, lost or twice",
	[SCORE_CLOCKS] = "clocks ahead, behind, drifting",
	[SCORE_NEWER_VERSION] = "daemons of a later version",
	[SCORE_OPERATORS] = "alerts kept back, reload, a crowd",
};

const char *cw_score_cluster_name(unsigned kind)
{
	return names[kind];
}

/*
 * Returns the kind of a disturbance. -1: it is none. If a node is lost, silent or stopped
 * permanently, that is the fault to be reported and not a disturbance.
 */
static int kind_of(const struct suite_scenario *s, const struct suite_fault *f)
{
	uint32_t n = 0; /* number of nodes */

	for (uint32_t i = 0; i < s->n_ranks; i++)
		n += cw_suite_set_has(&f->set, i);
	switch (f->action) {
	case SUITE_NODE_CUT:
		return n > 1 ? SCORE_HALVES : SCORE_NODE_AWAY;
	case SUITE_NODE_KILLED:
	case SUITE_NODE_STALLED:
		return SCORE_NODE_AWAY;
	case SUITE_LEADER:
		return SCORE_LEADER_AWAY;
	case SUITE_DIGESTS:
		return SCORE_DIGESTS;
	case SUITE_ALERTS:
	case SUITE_RELOAD:
	case SUITE_CROWD:
		return SCORE_OPERATORS;
	default:
		return -1;
	}
}

uint32_t cw_score_cluster_kinds(const struct suite_scenario *s)
{
	uint32_t kinds = 0;

	for (uint32_t i = 0; i < s->n_faults; i++) {
		int kind = kind_of(s, &s->faults[i]);

		if (kind >= 0)
			kinds |= 1u << kind;
	}
	for (uint32_t i = 0; i < s->n_machines; i++) {
		if (s->machines[i].is_newer)
			kinds |= 1u << SCORE_NEWER_VERSION;
		if (s->machines[i].has_ahead || s->machines[i].has_drift)
			kinds |= 1u << SCORE_CLOCKS;
	}
	return kinds;
}
