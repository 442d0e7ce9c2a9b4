/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control verb `mute` (docs/schemas.md). Finds the job, checks that the caller may mute it, and
 * mutes or unmutes it. The owner, root and the control group may mute a job.
 *
 * Loop thread only; writes the file of mutes.
 */
#pragma once

#include <jansson.h>

#include "daemon/alerts/mutes.h"
#include "daemon/control/status_doc.h"

struct cw_mute_answer {
	/* Exit status of the command line: 0 = success, 1 = error, 3 = no such job. */
	uint32_t code;
	json_t *doc; /* a new reference if code is 0 */
	char error[256];
};

void cw_control_mute(struct cw_mutes *mutes, const struct cw_status_source *status,
		     const struct cw_caller *caller, const json_t *arguments,
		     struct cw_mute_answer *ret);

/*
 * Returns the mute of a job for the verbs `mute` and `status`, {"until": …, "node": "…"}. "until"
 * is a time, or null for a mute without an end. Returns JSON null if the job is not muted.
 */
json_t *cw_control_mute_doc(struct cw_mutes *mutes, uint32_t uid, const char *label,
			    const char *self);
