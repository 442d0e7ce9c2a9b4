/* SPDX-License-Identifier: Apache-2.0 */
/*
 * During an upgrade: alerts that a node of an older version delivered. It tells of them by an id
 * that anybody could choose and does not say whose they are, so by itself that settles nothing. The
 * node is asked for its list of incidents, which says the user and the job of each, and the alert
 * counts for them alone (cw_alerts_learn()): whoever leads that job next does not send it again.
 * The same is asked at the start about what an older version noted here.
 *
 * No answer: the alert goes out a second time, rather than not at all.
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

/* Ids whose user is asked for at once; one more is forgotten and counted. */
#define CW_OLD_DELIVERIES_MAX 64u
/* Nodes asked at once, and in all about what was noted before the start. */
#define CW_OLD_DELIVERIES_IN_FLIGHT 4u
#define CW_OLD_DELIVERIES_PEERS 64u
/* Those noted before the start are asked about for so long: whoever led then may start again too.
 */
#define CW_OLD_DELIVERIES_FOR_NS (600 * CW_NS_PER_S)

struct cw_old_deliveries_config {
	const struct cw_clock *clock;
	struct cw_transport *transport;
	struct cw_store *store; /* what an older version noted */
	struct cw_alerts *alerts;
	/* cw_leader_doubts(); NULL = everybody is believed */
	bool (*doubts)(const char *from, const struct cw_msg_incident_delivered *d, void *user);
	void *user;
};

/* All borrowed. 0 or -ENOMEM. */
int cw_old_deliveries_new(const struct cw_old_deliveries_config *config,
			  struct cw_old_deliveries **ret);
/* Before the transport. Takes NULL; returns NULL. */
struct cw_old_deliveries *cw_old_deliveries_free(struct cw_old_deliveries *o);

/* What a peer told of without a label. */
void cw_old_deliveries_heard(struct cw_old_deliveries *o, const char *from, const char *id);
/* Call it several times a second. */
void cw_old_deliveries_tick(struct cw_old_deliveries *o);

/* Ids that were forgotten before their user was known. */
uint64_t cw_old_deliveries_lost(const struct cw_old_deliveries *o);
