/* SPDX-License-Identifier: Apache-2.0 */
/* The document of an epitaph, collwatch.epitaph/1: docs/schemas.md says what is in it. Pure. */
#pragma once

#include <jansson.h>

#include "leader/epitaph.h"

/* What of a job of thousands is listed one by one; the rest is counted. */
#define CW_EPITAPH_DOC_MAX_ENDS 64u
#define CW_EPITAPH_DOC_MAX_GROUPS 32u
#define CW_EPITAPH_DOC_MAX_OPEN 32u
#define CW_EPITAPH_DOC_MAX_LAST 16u
#define CW_EPITAPH_DOC_MAX_OPS 8u
#define CW_EPITAPH_DOC_MAX_NOTES 16u

struct cw_epitaph_facts {
	const struct cw_epitaph_scene *scene;
	const char *id;
	const struct cw_epitaph_death *deaths; /* one for each rank of the snapshot */
	const bool *is_first;
	const struct cw_epitaph_first *first;
	/* The job's own watchdog ended it: who was waited for is to blame, not who was first. */
	const struct cw_epitaph_wait *blamed;
};

/* NULL = out of memory. */
json_t *cw_epitaph_doc(const struct cw_epitaph_facts *f);
