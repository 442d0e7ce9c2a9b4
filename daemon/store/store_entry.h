/* SPDX-License-Identifier: Apache-2.0 */
/* The store's index entry for one bundle, in memory. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "leader/incident/incident_id.h"
#include "report/bundle.h"

struct cw_store_entry {
	char id[CW_INCIDENT_ID_MAX + 1]; /* the key */
	char time[32];
	char *job, *class, *summary;
	json_t *hosts;   /* of its culprits (report/incident_filter.h); NULL = unknown */
	int64_t uid;     /* owner of the job; -1 = unknown */
	int64_t wall_ns; /* last put, by the store's clock */
	uint64_t bytes;
	int64_t resent_ns;                 /* monotonic; last time we returned it as unsent */
	bool is_held;                      /* only in memory */
	char closed_as[16];                /* as in its incident; "" = open */
	char severity[16], suppressed[16]; /* likewise; "" = absent, not suppressed */
	int64_t unseen_ns; /* awake; no node is known to have it open since then; 0 = one has */
	bool has_postmortem, is_postmortem; /* is_postmortem: no incident, and no alert went out */
	struct cw_bundle bundle;
	UT_hash_handle hh;
};
