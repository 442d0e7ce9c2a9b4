/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a scenario's faults of daemons and their messages to the network that watches the
 * scenario. It cuts or stalls links, and loses, delays or doubles digests. It keeps alerts
 * undelivered or muted, and kills, holds or cuts off the node that leads the job. The virtual
 * cluster handles faults of nodes that the scenario names (cluster_daemon()).
 */
#pragma once

#include "lab/suite/scenario/scenario.h"
#include "lab/vjob/cluster.h"
#include "lab/vnet/network.h"

struct watch_faults {
	const struct suite_scenario *s;
	struct network *net;
	/* The current state. */
	bool are_undelivered, are_muted;
	uint32_t crowd; /* number of another user's jobs */
	struct {
		bool has_begun, is_over;
		int64_t until_ns;
		unsigned leader; /* the node that the fault struck, for SUITE_LEADER */
	} of[SUITE_MAX_FAULTS];
};

/* Sets ret to the clocks of the scenario's n_nodes machines. */
void watch_faults_machines(const struct suite_scenario *s, unsigned n_nodes,
			   struct network_time *ret);
/* Gives nodes a later version. Call it before the network's first run. */
void watch_faults_init(struct watch_faults *w, const struct suite_scenario *s, struct network *net);
/*
 * Begins the faults that are due at now_ns, and ends those that are over. now_ns is on the
 * scenario's own clock (0 = its beginning). A fault of the leader waits until a node leads.
 */
void watch_faults_run(struct watch_faults *w, struct cluster *cluster, int64_t now_ns);
/* True if all faults of the scenario have begun. */
bool watch_faults_have_begun(const struct watch_faults *w);
