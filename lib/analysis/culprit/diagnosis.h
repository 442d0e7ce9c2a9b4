/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one finding to a whole verdict: everybody it concerns, in which role, and how sure that is.
 * Texts are wording.h's.
 */
#pragma once

#include "analysis/culprit/engine_context.h"
#include "model/arena.h"
#include "model/verdict_types.h"

/* A verdict under construction; its arrays come from `arena`. */
struct diagnosis {
	struct engine_context *s;
	const struct finding *main;
	struct cw_arena *arena;
	struct cw_verdict *v;
	/* Other findings whose victims are partly the same; the main one is not among them. */
	const struct finding **related;
	uint32_t n_related;
	bool *is_culprit; /* per rank */
	/* Of a deadlock: how sure it is whose order is the odd one. */
	enum cw_confidence order_allows;
};

/* Fills everything of diag->v but texts and alternatives' reasons. Returns 0 or -ENOMEM. */
int diagnosis_describe(struct diagnosis *diag);

/*
 * The ranks of the minority's sides, of all sides where none is larger than every other; `ranks`
 * has room for al->n_compared. Returns how many.
 */
uint32_t diagnosis_list_minority(const struct alignment *al, uint32_t *ranks);
