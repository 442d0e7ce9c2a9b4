/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control verb `mute` (docs/schemas.md): finds the job, checks that the caller may mute it, and
 * answers. The owner, root and the control group may mute a job.
 *
 * Loop thread only; writes the file of mutes.
 */
#pragma once

#include <jansson.h>

#include "daemon/alerts/mutes.h"
#include "daemon/control/status_doc.h"

struct cw_mute_answer {
	uint32_t code; /* 0, 1 = error, 3 = no such job */
	json_t *doc;   /* new reference on code 0 */
	char error[256];
};

void cw_control_mute(struct cw_mutes *mutes, const struct cw_status_source *status,
		     const struct cw_caller *caller, const json_t *arguments,
		     struct cw_mute_answer *ret);

/*
 * Returns {"until": "…" or null for "for ever", "node": "…"}, or null if the job is not muted. The
 * verbs `mute` and `status` show it.
 */
json_t *cw_control_mute_doc(struct cw_mutes *mutes, uint32_t uid, const char *label,
			    const char *self);
