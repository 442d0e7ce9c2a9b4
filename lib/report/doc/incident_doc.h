/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents made of a verdict: collwatch.incident/1 and collwatch.healthy/1 (docs/schemas.md).
 * Ranks appear as the numbers people know, not as indices.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/* In place of a node: decided from recordings. */
#define CW_LEADER_ANALYZE "collwatch analyze"

struct cw_incident_info {
	const char *id;
	enum cw_confidence confidence; /* after patience, may be below the verdict's */
	enum cw_hang hang;
	enum cw_severity severity;
	bool proposes_serving; /* the job looks like a server, and is watched as training is */
	/* Wall time, ns; 0 = unknown (null in the document). */
	int64_t last_progress_wall_ns, stall_wall_ns, confirmed_wall_ns, resolved_wall_ns;
	const char *leader; /* node that decided */
	const char *bundle; /* directory on that node, or NULL */
};

/* New reference; NULL = out of memory. */
json_t *cw_incident_doc(const struct cw_snapshot *snap, const struct cw_verdict *v,
			const struct cw_incident_info *info);

/*
 * Says in the document where its culprits sit, by what was seen of them (an array of
 * collwatch.evidence/1): "sits_in" of each culprit and, for a single one, the end of the summary.
 * What is said already stays. Loop thread or any; does not block. 0 or -ENOMEM.
 */
int cw_incident_doc_add_positions(json_t *incident, const json_t *evidence);

/* The evidence about one culprit, by host and pid; borrowed, NULL = none. */
const json_t *cw_incident_doc_evidence_of(const json_t *culprit, const json_t *evidence);

/* Whether nobody is to be called for it. */
bool cw_incident_doc_is_notice(const json_t *incident);

/* Whether its trouble is over: it went on, its job ended, or no node has seen it for ten minutes.
 */
bool cw_incident_doc_is_over(const json_t *incident);
/*
 * How the trouble ended, in the past tense: "resolved after 17 s". Bounded; buf is returned.
 * Meaningless of one that is not over.
 */
const char *cw_incident_doc_how_over(const json_t *incident, char *buf, size_t len);
/*
 * As a message that is delivered at this time has it: where the trouble is over, a notice in the
 * past tense; where it was found a minute ago or more, with how long ago. New reference;
 * NULL = out of memory.
 */
json_t *cw_incident_doc_told_at(const json_t *incident, int64_t wall_ns);

/* collwatch.healthy/1: what was watched and for how long. */
json_t *cw_healthy_doc(const struct cw_snapshot *snap, int64_t watched_ns);
