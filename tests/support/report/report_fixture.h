/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of eight ranks on two nodes: rank 3 is in its data loader, the others are in an all_reduce.
 */
#pragma once

#include <jansson.h>

#include "analysis/verdict.h"
#include "model/snapshot.h"
#include "report/doc/incident_doc.h"

#define FIXTURE_RANKS 8u
#define FIXTURE_CULPRIT 3u
#define FIXTURE_COMM UINT64_C(0xfeedface12345678)

struct cw_snapshot *fixture_snapshot(void);

/*
 * Makes the verdict on the job, which borrows nothing. The caller releases it with
 * cw_verdict_fini().
 */
void fixture_verdict(struct cw_verdict *ret);

/* Returns a clause with this text as text from outside. It lives until the program ends. */
struct cw_clause fixture_said(const char *text);

extern const struct cw_incident_info fixture_info;

/*
 * Adds the evidence to an incident, as its leader does. Takes the document and returns the new one.
 */
json_t *fixture_add_evidence(json_t *incident, const json_t *evidence);

/* Returns the post-mortem of another job, for which no alert was sent. */
json_t *fixture_postmortem(void);

/* Returns an array with the collwatch.evidence/1 of the culprit and of a waiting rank. */
json_t *fixture_evidence(void);
