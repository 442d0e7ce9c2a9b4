/* SPDX-License-Identifier: Apache-2.0 */
/* What the store keeps in memory of one bundle: its line in the index. Loop thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "leader/incident/incident_id.h"
#include "report/bundle.h"

struct cw_store_entry {
	char id[CW_INCIDENT_ID_MAX + 1]; /* its key */
	char time[32];
	char *job, *class, *summary;
	json_t *hosts;   /* of its culprits (report/incident_filter.h); NULL = not known */
	int64_t uid;     /* whose job it was; -1 = not said */
	int64_t wall_ns; /* when it was last put, by the store's clock */
	uint64_t bytes;
	int64_t resent_ns;                 /* monotonic; when it was last given out as unsent */
	bool is_held;                      /* only in memory */
	char closed_as[16];                /* as in its incident; "" = it is open */
	char severity[16], suppressed[16]; /* likewise; "" = not said, not suppressed */
	int64_t unseen_ns; /* awake; since when nobody is known to have it open, 0 = one has */
	bool has_epitaph, is_epitaph; /* the second: nothing else, nobody was alerted */
	struct cw_bundle bundle;
	UT_hash_handle hh;
};
