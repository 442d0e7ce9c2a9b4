/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's disk, in memory: the incidents of its stored bundles, and the ids of delivered alerts.
 * It outlives the daemon.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "leader/incident/incident_id.h"

struct cw_bundle;

struct network_bundle {
	char id[CW_INCIDENT_ID_LEN];
	unsigned puts, amends;
	json_t *incident; /* from the last put or amendment */
	bool has_stacks;  /* of all requested ranks */
};

struct network_shelf {
	struct network_bundle *bundles;
	unsigned n_bundles, cap_bundles;
	char (*told)[CW_INCIDENT_ID_LEN]; /* from other nodes: the alert is out */
	unsigned n_told, cap_told;
	unsigned puts;
	json_t *last_put; /* incident of the last bundle put, without later amendments */
};

void network_shelf_fini(struct network_shelf *s);
/* Copies what it stores. 0 or -ENOMEM. */
int network_shelf_put(struct network_shelf *s, const struct cw_bundle *bundle);
/* -ENOENT: no bundle of this id. */
int network_shelf_amend(struct network_shelf *s, const json_t *incident);
/* NULL = none. Valid until the next put. */
const struct network_bundle *network_shelf_find(const struct network_shelf *s, const char *id);

int network_shelf_learn(struct network_shelf *s, const char *id);
bool network_shelf_was_told(const struct network_shelf *s, const char *id);
