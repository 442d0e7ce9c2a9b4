/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of all ranks of a job, merged (report/stacks/stack_tree.h): of one in trouble, or
 * because somebody wants to see them. No alert waits for them: they are asked for when the evidence
 * of culprits and one victim is there, one rank of each state first, and go into the bundle when
 * they come.
 *
 * Bounded: CW_SURVEY_MAX_PROCESSES in all and CW_SURVEY_MAX_PER_NODE on a node, CW_SURVEY_MAX_ASKED
 * nodes at a time, each for CW_SURVEY_NODE_MS, all of it for CW_SURVEY_NS. Who is left out, and
 * why, is in the document.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "identity/job_id.h"
#include "leader/incident/leader_effects.h"
#include "model/snapshot.h"

struct cw_evidence_set;
struct cw_survey;

#define CW_SURVEY_MAX_PROCESSES 4096u
#define CW_SURVEY_MAX_PER_NODE 64u
#define CW_SURVEY_MAX_ASKED 64u
#define CW_SURVEY_NODE_MS 25000u
#define CW_SURVEY_NS (60 * CW_NS_PER_S)
/* Ranks looked at as closely as culprits: one of each state that the culprits and victim are not.
 */
#define CW_SURVEY_MAX_CLOSE 6u

struct cw_survey_config {
	const struct cw_clock *clock;
	const struct cw_leader_effects *effects; /* send, ask, forget, peers */
	struct cw_job_id job;
	uint32_t what; /* CW_EVIDENCE_* */
	bool has_rank; /* one rank is looked at, closely, and nobody else */
	int32_t only_rank;
};

/*
 * Plans whom to ask; those of `taken` (may be NULL) are asked by somebody else. Borrows the
 * effects, copies what it needs of the others. 0 or -ENOMEM.
 */
int cw_survey_new(const struct cw_survey_config *config, const struct cw_snapshot *snap,
		  const struct cw_evidence_set *taken, struct cw_survey **ret);
/* Takes NULL; returns NULL. Cancels what is in flight. */
struct cw_survey *cw_survey_free(struct cw_survey *s);

/* Takes in what has come of those that somebody else asks for. */
void cw_survey_take(struct cw_survey *s, const struct cw_evidence_set *taken);

/* Begins asking; the second time does nothing. */
void cw_survey_start(struct cw_survey *s);
/* Deadlines; call it several times a second. */
void cw_survey_tick(struct cw_survey *s);
/* Nobody is asked any more: who has not answered is left out for this reason. */
void cw_survey_stop(struct cw_survey *s, const char *why);

bool cw_survey_is_complete(const struct cw_survey *s);
/* Answers so far: tells whether there is news. */
uint32_t cw_survey_answers(const struct cw_survey *s);
/* collwatch.stacks/1; NULL = nothing seen yet, or out of memory. New reference. */
json_t *cw_survey_doc(const struct cw_survey *s);
/* Appends what was seen of ranks looked at closely to an array of collwatch.evidence/1. */
int cw_survey_add_evidence(const struct cw_survey *s, json_t *evidence);
