/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the leader's effects in the daemon. It sends messages through the transport, and
 * passes bundles and alerts to daemon/store and daemon/alerts. Loop thread only.
 */
#pragma once

#include "leader/incident/leader_effects.h"

struct cw_alerts;
struct cw_transport;
struct cw_user_names;

struct cw_leader_driver {
	struct cw_transport *transport;
	struct cw_alerts *alerts;
	struct cw_user_names *user_names;
	struct cw_leader_effects effects;
};

/*
 * Borrows all arguments. The caller must not move *d afterwards, because the leader points into it.
 */
void cw_leader_driver_init(struct cw_leader_driver *d, struct cw_transport *transport,
			   struct cw_alerts *alerts, struct cw_user_names *user_names);
