/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the document of a post-mortem: a collwatch.incident/1 of severity `failed`, with the ends
 * of the ranks (docs/schemas.md). Pure.
 */
#pragma once

#include <jansson.h>

#include "leader/postmortem.h"

/*
 * The maximum numbers of items that we list for a job of thousands of ranks. We only count further
 * items.
 */
#define CW_POSTMORTEM_DOC_MAX_ENDS 64u
#define CW_POSTMORTEM_DOC_MAX_GROUPS 32u
#define CW_POSTMORTEM_DOC_MAX_OPEN 32u
#define CW_POSTMORTEM_DOC_MAX_LAST 16u
#define CW_POSTMORTEM_DOC_MAX_OPS 8u
#define CW_POSTMORTEM_DOC_MAX_NOTES 16u

struct cw_postmortem_facts {
	const struct cw_postmortem_input *input;
	const char *id;
	const struct cw_postmortem_death *deaths; /* one for each rank of the snapshot */
	const bool *is_first;
	const struct cw_postmortem_first *first;
	/*
	 * Set if the job's own watchdog ended the job. We then blame the ranks that the job waited
	 * for, and not the first death.
	 */
	const struct cw_postmortem_wait *blamed;
};

/* Builds the document. Returns NULL if out of memory. */
json_t *cw_postmortem_doc(const struct cw_postmortem_facts *facts);
