/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a snapshot that an incident's bundle keeps: all of it, unless the job is large. Then
 * the communicator the verdict is about, those on its chain, then others, as far as there is room:
 * they give the same verdict again. Pure; any thread.
 */
#pragma once

#include "model/verdict_types.h"
#include "report/doc/snapshot_text.h"

/*
 * Memberships in a bundle's snapshot, unless the one communicator it is about has more: a leader of
 * 300,000 has neither memory nor time for the text of all.
 */
#define CW_INCIDENT_PART_MAX_MEMBERS 8192u

/* Begins with the part's text. NULL = out of memory. */
struct cw_snapshot_text *cw_incident_part_text(const struct cw_snapshot *snap,
					       const struct cw_verdict *v);
