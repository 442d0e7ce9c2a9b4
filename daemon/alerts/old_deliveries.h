/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles upgrades: deliveries reported by nodes of an older version. Such a node reports an alert
 * by an id that any process could choose, and does not name its user, so the report alone settles
 * nothing. We ask the node for its list of incidents, which states the user and job of each. The
 * alert then counts as delivered for that user and job only (cw_alerts_learn()), and the next
 * leader of the job does not send it again. At the start we ask the same about ids that an older
 * version noted on this node.
 *
 * If no answer comes, the alert goes out twice rather than not at all.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "daemon/alerts/alerts.h"
#include "daemon/store/store.h"
#include "transport/transport.h"

struct cw_old_deliveries;

/* Ids that may wait for their user; beyond that an id is forgotten and counted. */
#define CW_OLD_DELIVERIES_MAX 64u
/* Nodes asked at a time, and nodes asked in all about ids noted before the start. */
#define CW_OLD_DELIVERIES_IN_FLIGHT 4u
#define CW_OLD_DELIVERIES_PEERS 64u
/* How long we ask about ids noted before the start: their leader of that time may restart too. */
#define CW_OLD_DELIVERIES_FOR_NS (600 * CW_NS_PER_S)

struct cw_old_deliveries_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct cw_store *store; /* holds what an older version noted */
	struct cw_alerts *alerts;
	/* cw_leader_is_unconfirmed(); NULL = believe every node */
	bool (*is_unconfirmed)(const char *from, const struct cw_msg_incident_delivered *d,
			       void *user);
	void *user;
};

/* All borrowed. 0 or -ENOMEM. */
int cw_old_deliveries_new(const struct cw_old_deliveries_config *config,
			  struct cw_old_deliveries **ret);
/* Call it before the transport is freed. Takes NULL; returns NULL. */
struct cw_old_deliveries *cw_old_deliveries_free(struct cw_old_deliveries *o);

/* A peer reported an id without a label. */
void cw_old_deliveries_add(struct cw_old_deliveries *o, const char *from, const char *id);
/* Call it several times a second. */
void cw_old_deliveries_tick(struct cw_old_deliveries *o);

/* The number of ids forgotten before we knew their user. */
uint64_t cw_old_deliveries_lost(const struct cw_old_deliveries *o);
