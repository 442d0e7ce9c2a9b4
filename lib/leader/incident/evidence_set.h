/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence of one incident while it is collected: whom to look at, which answers have come.
 * Culprits first, then one representative of those that wait; the dead are not looked at, their
 * records already tell. Loop thread only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "identity/job_id.h"
#include "leader/incident/leader_effects.h"
#include "model/verdict_types.h"

#define CW_EVIDENCE_MAX_TARGETS 9u

struct cw_evidence_slot {
	char *node;
	int32_t pid;
	uint64_t start_ticks;
	bool is_awaited;
	bool wants_python; /* asked for that alone: it had been refused */
	json_t *doc;       /* collwatch.evidence/1; NULL = has not come */
};

struct cw_evidence_set {
	struct cw_evidence_slot slots[CW_EVIDENCE_MAX_TARGETS];
	unsigned n_slots;
};

/* Drops all documents; requests in flight are cancelled by the owner. */
void cw_evidence_set_fini(struct cw_evidence_set *set);

/* Chooses targets and sends one request to each of their nodes; callbacks get fn_user. */
int cw_evidence_set_request(struct cw_evidence_set *set, const struct cw_leader_effects *e,
			    const struct cw_job_id *job, const struct cw_snapshot *snap,
			    const struct cw_verdict *v, uint32_t deadline_ms,
			    cw_leader_answer_fn fn, void *fn_user);

/*
 * Asks those once more for their Python stacks whose interpreter seemed to run then: one that
 * stands in a hang rests by now. Callbacks as above; nothing is asked where nothing was refused.
 */
void cw_evidence_set_ask_python(struct cw_evidence_set *set, const struct cw_leader_effects *e,
				const struct cw_job_id *job, uint32_t deadline_ms,
				cw_leader_answer_fn fn, void *fn_user);

/* Takes in one reply (NULL: nothing more comes from the node). */
void cw_evidence_set_take(struct cw_evidence_set *set, const char *node,
			  const struct cw_message *reply);
/* A collwatch.evidence/1; NULL = it is none. New reference. */
json_t *cw_evidence_set_parse(const char *text);
bool cw_evidence_set_is_complete(const struct cw_evidence_set *set);
/* New reference to an array, culprits first. NULL = out of memory. */
json_t *cw_evidence_set_array(const struct cw_evidence_set *set);
