/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the part of a snapshot for an incident's bundle. The part is the whole snapshot, unless
 * the job is large. For a large job, we take the verdict's communicator, then the communicators on
 * its chain, then others, up to the limit. The part gives the same verdict as the whole. Pure; any
 * thread.
 */
#pragma once

#include "model/verdict_types.h"
#include "report/doc/snapshot_text.h"

/*
 * The maximum number of memberships in a bundle's snapshot. If the verdict's communicator has more,
 * we exceed it. A leader of 300,000 memberships has neither memory nor time for the full text.
 */
#define CW_INCIDENT_PART_MAX_MEMBERS 8192u

/* Starts the text of the part. NULL = out of memory. */
struct cw_snapshot_text *cw_incident_part_text(const struct cw_snapshot *snap,
					       const struct cw_verdict *verdict);
