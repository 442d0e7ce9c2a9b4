/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scenario does to daemons and to what they send each other, done to the network that
 * watches it: links are cut or stalled, digests lost, late or doubled, alerts undelivered or muted,
 * and whoever leads the job is killed, held or cut off. What befalls the daemons of nodes it names
 * is the cluster's (cluster_daemon()).
 */
#pragma once

#include "lab/suite/scenario/scenario.h"
#include "lab/vjob/cluster.h"
#include "lab/vnet/network.h"

struct watch_faults {
	const struct suite_scenario *s;
	struct network *net;
	/* What holds at the moment. */
	bool are_undelivered, are_muted;
	uint32_t crowd; /* jobs of somebody else */
	struct {
		bool has_begun, is_over;
		int64_t until_ns;
		unsigned leader; /* of SUITE_LEADER */
	} of[SUITE_MAX_FAULTS];
};

/* How the scenario's machines are: n_nodes of them in ret. */
void watch_faults_machines(const struct suite_scenario *s, unsigned n_nodes,
			   struct network_time *ret);
/* Before the network's first run: daemons of the version before. */
void watch_faults_init(struct watch_faults *w, const struct suite_scenario *s, struct network *net);
/*
 * What is due at now_ns of the scenario's own clock (0 = its beginning) happens, and what is over
 * ends. A fault of a leader waits until there is one.
 */
void watch_faults_run(struct watch_faults *w, struct cluster *cluster, int64_t now_ns);
/* All of the scenario's have. */
bool watch_faults_have_begun(const struct watch_faults *w);
