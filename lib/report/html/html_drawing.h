/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pictures of a page: who waits for whom, and what ranks did around the hang. Inline SVG, drawn
 * from the snapshot of the bundle, with ranks in equal positions folded into sets
 * (report/rank_sets.h), so that they are the same size for 8 ranks and for 65,536.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "report/rank_sets.h"

struct drawing {
	const json_t *incident;
	const struct cw_snapshot *snap;
	struct rank_sets sets;
	int64_t since_ns; /* when it stopped, on the snapshot's timeline */
};

/* Borrows incident and snap. 0 or -ENOMEM; *ret is for drawing_fini() also then. */
int drawing_init(const json_t *incident, const struct cw_snapshot *snap, struct drawing *ret);
void drawing_fini(struct drawing *d);

/* "rank 3", "ranks 0-2,4", "1016 ranks: 0-2,4,…"; cut to what a box has room for. Returns buf. */
char *drawing_set_name(const struct drawing *d, const struct rank_set *set, char *buf, size_t len);

/* What the document says of the culprit that this set is, or of its first; NULL = it is none. */
const json_t *drawing_culprit(const struct drawing *d, const struct rank_set *set);

/* Nothing where nobody waits. */
void html_put_waits(FILE *out, const struct drawing *d);
void html_put_timeline(FILE *out, const struct drawing *d);
