/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's entry for one bundle. All entries are in memory; together we call them the index.
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "leader/incident/incident_id.h"
#include "report/bundle.h"

struct cw_store_entry {
	char id[CW_INCIDENT_ID_MAX + 1]; /* key of the table */
	char time[32];
	char *job, *class, *summary;
	/* Hosts of the incident's culprits (report/incident_filter.h); NULL = unknown. */
	json_t *hosts;
	int64_t uid;     /* user that owns the job; -1 = unknown */
	int64_t wall_ns; /* time of the last put, by the store's clock */
	uint64_t bytes;
	/* Monotonic time when cw_store_next_unsent() last returned this bundle; 0 = never. */
	int64_t resent_ns;
	bool is_held;                      /* true if the bundle is only in memory */
	char closed_as[16];                /* field of the incident; "" = the incident is open */
	char severity[16], suppressed[16]; /* fields of the incident; "" = it has no such field */
	/*
	 * Awake time of the first check that found the incident open on no node, if all later
	 * checks agree; 0 = the last check found it open.
	 */
	int64_t unseen_ns;
	bool has_ending;    /* the incident says how the job ended */
	bool is_postmortem; /* its severity is `failed`, so there is no alert */
	struct cw_bundle bundle;
	UT_hash_handle hh;
};
