/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/alternatives.h"

#include <errno.h>

/* Two waits that began within this time belong to one event. */
#define SAME_EVENT_NS (INT64_C(1) * 1000000000)

bool alternatives_same_event(const struct cw_snapshot *snap, const struct finding *main,
			     const struct finding *f)
{
	int64_t slack = (snap->now_ns - main->since_ns) / 2;

	return f->since_ns <= main->since_ns + (slack > SAME_EVENT_NS ? slack : SAME_EVENT_NS);
}

/*
 * True if finding f is a second answer to the question of the main finding, and not a consequence
 * of the main finding.
 */
static bool is_alternative(const struct diagnosis *diag, const struct finding *f)
{
	const struct finding *m = diag->main;

	if (f->verdict_class == m->verdict_class || f->verdict_class == CW_CLASS_UNKNOWN ||
	    engine_context_explains(diag->s, m, f))
		return false;
	if (f->rank != CW_SNAP_NONE && diag->is_culprit[f->rank])
		return false;
	/* An error that follows from the main finding is no second answer. */
	if (f->has_failed && f->is_late)
		return false;
	/*
	 * f may be a wait on the comm of the main finding. There the members' differing calls are
	 * already the reason.
	 */
	if (m->verdict_class == CW_CLASS_MISMATCH && f->comm == m->comm)
		return false;
	return alternatives_same_event(diag->s->snap, m, f);
}

/*
 * Lists one alternative per class of the related findings. It may add one mismatch: an extra call,
 * or a setup in which the members differ. Sorts the culprits and sets the probabilities.
 */
int alternatives_list(struct diagnosis *diag)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct finding *main = diag->main;
	const struct gate *gate = NULL;
	struct cw_verdict *v = diag->v;
	uint32_t n = 0;

	for (uint32_t i = 0; i < diag->n_related; i++)
		n += is_alternative(diag, diag->related[i]);
	/*
	 * One more entry is for the added mismatch. A finding cannot have both an extra call and a
	 * setup that differs.
	 */
	v->alternatives = cw_arena_new_array(diag->arena, struct cw_alternative, (size_t)n + 1);
	if (!v->alternatives)
		return -ENOMEM;
	for (uint32_t i = 0; i < diag->n_related; i++) {
		const struct finding *f = diag->related[i];
		struct cw_alternative *alt = NULL;
		uint32_t *ranks;

		if (!is_alternative(diag, f))
			continue;
		for (uint32_t k = 0; k < v->n_alternatives; k++)
			if (v->alternatives[k].verdict_class == f->verdict_class)
				alt = &v->alternatives[k];
		if (!alt) {
			alt = &v->alternatives[v->n_alternatives++];
			alt->verdict_class = f->verdict_class;
			alt->culprits = cw_arena_new_array(diag->arena, uint32_t, n);
			if (!alt->culprits)
				return -ENOMEM;
		}
		ranks = alt->culprits;
		if (f->rank != CW_SNAP_NONE)
			ranks[alt->n_culprits++] = f->rank;
	}
	/*
	 * A few ranks wait for most of the comm. Either most ranks are blocked, or the few ranks
	 * made a call that no other rank will ever make.
	 */
	if (main->verdict_class == CW_CLASS_NEVER_ENTERED)
		gate = &diag->s->g.gates[main->gate];
	if (gate && gate->kind == GATE_COLLECTIVE &&
	    gate->n_missing_all > snap->comms[gate->comm].nranks / 2 &&
	    v->n_culprits > gate->n_waiters) {
		struct cw_alternative *alt = &v->alternatives[v->n_alternatives++];

		alt->verdict_class = CW_CLASS_MISMATCH;
		alt->n_culprits = gate->n_waiters;
		alt->culprits = cw_arena_memdup(diag->arena, gate->waiters, gate->n_waiters,
						sizeof(*gate->waiters));
		if (!alt->culprits)
			return -ENOMEM;
	}
	/* All members are inside the call, but they differ in a trait that they should share. */
	if (main->setup && v->verdict_class != CW_CLASS_MISMATCH) {
		struct cw_alternative *alt = &v->alternatives[v->n_alternatives++];

		alt->verdict_class = CW_CLASS_MISMATCH;
		alt->culprits = cw_arena_new_array(diag->arena, uint32_t, main->setup->n_compared);
		if (!alt->culprits)
			return -ENOMEM;
		alt->n_culprits = diagnosis_list_minority(main->setup, alt->culprits);
	}
	for (uint32_t k = 0; k < v->n_alternatives; k++) {
		struct cw_alternative *alt = &v->alternatives[k];

		align_sort_ranks(snap, alt->culprits, alt->n_culprits);
		/*
		 * We have no better evidence for the main finding. It comes first only by the order
		 * of classes.
		 */
		alt->probability = 0.3 / v->n_alternatives;
	}
	return 0;
}
