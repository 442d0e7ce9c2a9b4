/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes documents from a verdict: collwatch.incident/1 and collwatch.healthy/1 (docs/schemas.md).
 * They name ranks by the user's numbers, not by indices into the snapshot.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/incident_list.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

/* The leader's name in an incident that `collwatch analyze` found in recordings. */
#define CW_LEADER_ANALYZE "collwatch analyze"

struct cw_incident_info {
	const char *id;
	/* Confidence by the rules of docs/design/patience.md; may be lower than the verdict's. */
	enum cw_confidence confidence;
	enum cw_hang hang;
	enum cw_severity severity;
	/* the job looks like a server, but collwatch watches it as a training job */
	bool proposes_serving;
	/* Wall time, ns; 0 = unknown (null in the document). */
	int64_t last_progress_wall_ns, stall_wall_ns, confirmed_wall_ns, resolved_wall_ns;
	const char *leader; /* name of the node that made the decision */
	const char *bundle; /* directory on that node, or NULL */
};

/* Makes a collwatch.incident/1. New reference; NULL = out of memory. */
json_t *cw_incident_doc(const struct cw_snapshot *snap, const struct cw_verdict *v,
			const struct cw_incident_info *info);

/*
 * Adds what the evidence (an array of collwatch.evidence/1) says about the culprits. A culprit gets
 * its position, `sits_in`. If there is only one culprit, the summary ends with its position. A
 * culprit that already has a position keeps it. The arena owns the new facts. Any thread; does not
 * block. Returns 0 or -ENOMEM.
 */
int cw_incident_facts_add_evidence(struct cw_incident_facts *incident, struct cw_arena *arena,
				   const json_t *evidence);

/* True if the incident is a notice, which alerts no user. */
bool cw_incident_doc_is_notice(const json_t *incident);

/*
 * True if the incident is over: the job continued, the job ended, or no node has seen the incident
 * for ten minutes.
 */
bool cw_incident_doc_is_over(const json_t *incident);
/*
 * Says in the past tense how the incident ended: "resolved after 17 s". Returns buf. Call it only
 * for an incident that is over.
 */
const char *cw_incident_doc_how_over(const json_t *incident, char *buf, size_t len);
/*
 * Returns the document for a message that is delivered at wall_ns. If the incident is over, it is a
 * notice in the past tense. If we found it a minute ago or more, it states its age. New reference;
 * NULL = out of memory.
 */
json_t *cw_incident_doc_as_of(const json_t *incident, int64_t wall_ns);

/* Makes a collwatch.healthy/1: the observed job and the duration of the observation, watched_ns. */
json_t *cw_healthy_doc(const struct cw_snapshot *snap, int64_t watched_ns);
