/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one finding to a whole verdict: all ranks that the finding concerns, their roles, the call,
 * other answers, and a chain of waits. certainty.h adds the confidence, and wording.h the texts.
 */
#pragma once

#include "analysis/culprit/engine_context.h"
#include "analysis/culprit/independent_groups.h"
#include "model/arena.h"
#include "model/verdict_types.h"

/* A verdict under construction. Its arrays come from `arena`. */
struct diagnosis {
	struct engine_context *s;
	const struct independent_groups *groups;
	const struct finding *main;
	struct cw_arena *arena;
	struct cw_verdict *v;
	/* Other findings that share victims with the main finding. */
	const struct finding **related;
	uint32_t n_related;
	/*
	 * If some members completed the call of the main finding and others did not: all findings
	 * of this kind that are the same trouble, the main finding first.
	 */
	const struct finding **unfinished;
	uint32_t n_unfinished;
	bool *is_culprit; /* per rank: it is a culprit */
	/*
	 * For a deadlock: the highest confidence that is justified by the known orders of the
	 * ranks' calls.
	 */
	enum cw_confidence order_allows;
};

/*
 * Fills diag->v, except for its confidence, wanted windows and texts. The caller sets diag->s,
 * diag->groups, diag->main, diag->arena and diag->v. Returns 0 or -ENOMEM.
 */
int diagnosis_describe(struct diagnosis *diag);

/*
 * Lists the ranks of all sides except the majority's. If no side is the largest, lists the ranks of
 * all sides. `ranks` has room for al->n_compared. Returns the number of ranks.
 */
uint32_t diagnosis_list_minority(const struct alignment *al, uint32_t *ranks);
