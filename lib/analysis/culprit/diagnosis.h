/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one finding to a whole verdict: all ranks that it concerns, their roles, the call, other
 * answers and a chain of waits. certainty.h adds the confidence, wording.h the texts.
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
	/* Other findings that share victims with the main one. The main one is not among them. */
	const struct finding **related;
	uint32_t n_related;
	bool *is_culprit; /* per rank */
	/* For a deadlock: how sure we are which rank's order is the odd one. */
	enum cw_confidence order_allows;
};

/*
 * Fills diag->v, except for its confidence, wanted windows and texts. `s`, `main`, `arena` and `v`
 * of *diag must be set. Returns 0 or -ENOMEM.
 */
int diagnosis_describe(struct diagnosis *diag);

/*
 * Lists the ranks of all sides but the majority's, or of all sides if none is the largest. `ranks`
 * has room for al->n_compared. Returns their number.
 */
uint32_t diagnosis_list_minority(const struct alignment *al, uint32_t *ranks);
