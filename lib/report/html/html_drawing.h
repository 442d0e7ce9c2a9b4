/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pictures of a page: the waits between ranks, and the ranks' calls around the hang. We draw
 * inline SVG from the bundle's snapshot. Ranks in equal positions form one set
 * (report/rank_sets.h). So a picture of 65,536 ranks is as large as one of 8 ranks.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "model/incident_list.h"
#include "report/rank_sets.h"

struct drawing {
	const struct cw_incident_facts *incident;
	const struct cw_snapshot *snap;
	struct rank_sets sets;
	int64_t since_ns; /* when the job stopped, on the snapshot's clock */
};

/*
 * Prepares the drawings of an incident. *ret borrows incident and snap. Returns 0 or -ENOMEM. The
 * caller calls drawing_fini() in both cases.
 */
int drawing_init(const struct cw_incident_facts *incident, const struct cw_snapshot *snap,
		 struct drawing *ret);
void drawing_fini(struct drawing *d);

/*
 * Writes the name of a set: "rank 3", "ranks 0-2,4" or "1016 ranks: 0-2,4,…". We cut a name that
 * exceeds the room in a box. Returns buf.
 */
char *drawing_set_name(const struct drawing *d, const struct rank_set *set, char *buf, size_t len);

/* Returns the incident's entry for the first culprit in this set; NULL = the set has no culprit. */
const struct cw_incident_culprit *drawing_culprit(const struct drawing *d,
						  const struct rank_set *set);

/* Write the two pictures. html_put_waits() writes nothing if no rank waits. */
void html_put_waits(FILE *out, const struct drawing *d);
void html_put_timeline(FILE *out, const struct drawing *d);
