/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the evidence of one incident: the target processes, and their answers so far. The
 * targets are the culprits, then one representative of the waiting ranks. We skip dead ranks
 * without a core file, because their records already contain enough. Loop thread only.
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
	int32_t rank, pid; /* rank: one of the process's ranks; -1 = it has no number */
	uint64_t start_ticks;
	bool is_awaited;
	/* We send a second request, for Python only, because the process refused the first. */
	bool wants_python;
	json_t *doc; /* collwatch.evidence/1; NULL = no answer yet */
};

struct cw_evidence_set {
	struct cw_evidence_slot slots[CW_EVIDENCE_MAX_TARGETS];
	unsigned n_slots;
};

/* Drops all documents. The owner must first cancel the requests in flight. */
void cw_evidence_set_fini(struct cw_evidence_set *set);

/*
 * Chooses the targets and sends one request to each of their nodes. what: CW_EVIDENCE_*. Each
 * answer calls fn with fn_user. Returns 0 or -errno.
 */
int cw_evidence_set_request(struct cw_evidence_set *set, uint32_t what,
			    const struct cw_leader_effects *effects, const struct cw_job_id *job,
			    const struct cw_snapshot *snap, const struct cw_verdict *verdict,
			    uint32_t deadline_ms, cw_leader_answer_fn fn, void *fn_user);

/*
 * Requests the Python stacks again from processes that refused because their interpreter seemed to
 * run. If a rank hangs, its interpreter is idle by now. fn and fn_user are as in
 * cw_evidence_set_request(). Sends nothing if no process refused.
 */
void cw_evidence_set_ask_python(struct cw_evidence_set *set,
				const struct cw_leader_effects *effects,
				const struct cw_job_id *job, uint32_t deadline_ms,
				cw_leader_answer_fn fn, void *fn_user);

/* Takes one reply of a node. reply = NULL: the node sends no more replies. */
void cw_evidence_set_take(struct cw_evidence_set *set, const char *node,
			  const struct cw_message *reply);
/*
 * Parses a collwatch.evidence/1. Returns a new reference; NULL = the text is not such a document.
 */
json_t *cw_evidence_set_parse(const char *text);
bool cw_evidence_set_is_complete(const struct cw_evidence_set *set);
/* Returns a new reference to an array of the evidence, the culprits first. NULL = out of memory. */
json_t *cw_evidence_set_array(const struct cw_evidence_set *set);
