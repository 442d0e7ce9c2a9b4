/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects and merges the stacks of all ranks of a job (report/stacks/stack_tree.h), for an
 * incident or because a user requests them. No alert waits for these stacks. An incident first
 * requests the evidence of culprits and one victim. After that it requests these stacks, beginning
 * with one rank of each state. The stacks go into the bundle as they arrive.
 *
 * Limits: CW_STACK_COLLECTION_MAX_PROCESSES in all and CW_STACK_COLLECTION_MAX_PER_NODE on a node;
 * CW_STACK_COLLECTION_MAX_ASKED nodes at a time, each for CW_STACK_COLLECTION_NODE_MS;
 * CW_STACK_COLLECTION_NS for the whole collection. The document lists omitted ranks with reasons.
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
struct cw_stack_collection;

#define CW_STACK_COLLECTION_MAX_PROCESSES 4096u
#define CW_STACK_COLLECTION_MAX_PER_NODE 64u
#define CW_STACK_COLLECTION_MAX_ASKED 64u
#define CW_STACK_COLLECTION_NODE_MS 25000u
#define CW_STACK_COLLECTION_NS (60 * CW_NS_PER_S)
/*
 * The maximum number of ranks that we inspect as closely as culprits. We take one rank for each
 * state that no culprit or victim has.
 */
#define CW_STACK_COLLECTION_MAX_CLOSE 6u

struct cw_stack_collection_config {
	const struct cw_clock *clock;
	const struct cw_leader_effects *effects; /* uses send, ask, cancel and peers */
	struct cw_job_id job;
	uint32_t what; /* CW_EVIDENCE_* */
	bool has_rank; /* inspect only this rank, and inspect it closely */
	int32_t only_rank;
};

/*
 * Plans the requests. Excludes the targets of `taken` (which may be NULL), because the owner of
 * `taken` requests these. Borrows the effects. Copies the parts of the other arguments that it
 * needs. Returns 0 or -ENOMEM.
 */
int cw_stack_collection_new(const struct cw_stack_collection_config *config,
			    const struct cw_snapshot *snap, const struct cw_evidence_set *taken,
			    struct cw_stack_collection **ret);
/* Cancels all requests in flight and frees the collection, which may be NULL. Returns NULL. */
struct cw_stack_collection *cw_stack_collection_free(struct cw_stack_collection *s);

/* Takes the answers that the requests of the owner of `taken` have got so far. */
void cw_stack_collection_take(struct cw_stack_collection *s, const struct cw_evidence_set *taken);

/* Sends the first requests. Does nothing the second time. */
void cw_stack_collection_start(struct cw_stack_collection *s);
/* Handles deadlines. The caller runs this several times a second. */
void cw_stack_collection_tick(struct cw_stack_collection *s);
/* Ends all requests. Records ranks without an answer as omitted, with the reason `why`. */
void cw_stack_collection_stop(struct cw_stack_collection *s, const char *why);

bool cw_stack_collection_is_complete(const struct cw_stack_collection *s);
/* Returns the number of answers so far. When the number changes, the document has changed. */
uint32_t cw_stack_collection_answers(const struct cw_stack_collection *s);
/* Returns a new reference to a collwatch.stacks/1. NULL = no stack so far, or out of memory. */
json_t *cw_stack_collection_doc(const struct cw_stack_collection *s);
/*
 * Returns the ages of the stacks now, to a tenth of a second, the youngest first: [{"ranks": "0-7",
 * "n": 8, "age_s": 0.3}]. New reference; NULL = out of memory.
 */
json_t *cw_stack_collection_ages(const struct cw_stack_collection *s);
/*
 * Appends the documents of closely inspected ranks to an array of collwatch.evidence/1. Returns 0
 * or -errno.
 */
int cw_stack_collection_add_evidence(const struct cw_stack_collection *s, json_t *evidence);
