/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's disk, in memory. It has the incidents of stored bundles and the ids of delivered alerts,
 * and outlives the daemon.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "leader/incident/incident_id.h"

struct cw_bundle;

struct fake_store_bundle {
	char id[CW_INCIDENT_ID_LEN];
	unsigned puts, updates;
	json_t *incident; /* the incident of the last put or update */
	bool has_stacks;  /* the bundle has the stacks of all ranks that the leader requested */
};

struct fake_store {
	struct fake_store_bundle *bundles;
	unsigned n_bundles, cap_bundles;
	char (*delivered)[CW_INCIDENT_ID_LEN]; /* ids of alerts that other nodes have delivered */
	unsigned n_delivered, cap_delivered;
	unsigned puts;
	json_t *last_put; /* incident of the last bundle put, without later updates */
};

void fake_store_fini(struct fake_store *s);
/* Stores a copy of the bundle. Returns 0 or -ENOMEM. */
int fake_store_put(struct fake_store *s, const struct cw_bundle *bundle);
/*
 * Replaces the incident of a bundle. Returns 0 or -errno; -ENOENT: there is no bundle with this id.
 */
int fake_store_update_incident(struct fake_store *s, const json_t *incident);
/* Returns the bundle with this id; NULL = there is none. Valid until the next put. */
const struct fake_store_bundle *fake_store_find(const struct fake_store *s, const char *id);

int fake_store_learn(struct fake_store *s, const char *id);
bool fake_store_was_delivered(const struct fake_store *s, const char *id);
