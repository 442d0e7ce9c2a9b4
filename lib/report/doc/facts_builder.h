/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the facts of an incident (model/incident_list.h) in an arena. If memory runs out, pieces
 * are missing, and `bad` is not 0. The caller checks it once, at the end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/incident_list.h"
#include "model/snapshot.h"

struct cw_facts_builder {
	struct cw_arena *arena;
	int bad;
};

/* Returns zeroed memory for n elements, and for n = 0 memory for one. NULL = out of memory. */
void *cw_facts_make(struct cw_facts_builder *b, size_t n, size_t size);
#define cw_facts_one(b, type) ((type *)cw_facts_make((b), 1, sizeof(type)))
#define cw_facts_list(b, type, n) ((type *)cw_facts_make((b), (n), sizeof(type)))

/* Returns a copy of the text; NULL for NULL. */
const char *cw_facts_text(struct cw_facts_builder *b, const char *text);

/* Returns the numbers of ranks as a set: "0-2,5". */
const char *cw_facts_set(struct cw_facts_builder *b, const int32_t *labels, uint32_t n);

struct cw_named cw_facts_named(unsigned number, const char *(*name_of)(unsigned number));

/* Renders a sentence of at most len bytes. The fact borrows the clause's arguments. */
struct cw_incident_sentence cw_facts_sentence(struct cw_facts_builder *b,
					      const struct cw_clause *clause, size_t len);

/* Makes a sentence of a text that has no sayings of its own. Copies the text. */
struct cw_incident_sentence cw_facts_plain(struct cw_facts_builder *b, const char *text);

/* Copies a fact about a rank, by name: for CW_INCIDENT_PLACE_FACTS and CW_INCIDENT_POD_FACTS. */
#define CW_FACTS_COPY(form, type, name, ...) to->name = rank->name;

/*
 * Sets all facts about a culprit that the snapshot has, but no reason. The facts borrow texts of
 * the snapshot. An index out of range has no host, and the rank -1.
 */
void cw_facts_culprit(const struct cw_snapshot *snap, uint32_t index,
		      struct cw_incident_culprit *to);
