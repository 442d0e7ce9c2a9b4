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
	json_t *hosts;   /* hosts of the culprits (report/incident_filter.h); NULL = unknown */
	int64_t uid;     /* owner of the job; -1 = unknown */
	int64_t wall_ns; /* time of the last put, by the store's clock */
	uint64_t bytes;
	int64_t resent_ns;                 /* monotonic time when we last returned it as unsent */
	bool is_held;                      /* the bundle is only in memory */
	char closed_as[16];                /* closed_as of the incident; "" = open */
	char severity[16], suppressed[16]; /* as in the incident; "" = absent, or not suppressed */
	/* Awake time since when no node is known to have it open; 0 = a node has it open. */
	int64_t unseen_ns;
	/* is_postmortem: there is no incident, and no alert went out. */
	bool has_postmortem, is_postmortem;
	struct cw_bundle bundle;
	UT_hash_handle hh;
};
