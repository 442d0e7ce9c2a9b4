/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/alternatives.h"

#include <errno.h>

/* Waits this much younger than the oldest are of the same event. */
#define SAME_EVENT_NS (INT64_C(1) * 1000000000)

bool alternatives_same_event(const struct cw_snapshot *snap, const struct finding *main,
			     const struct finding *f)
{
	int64_t slack = (snap->now_ns - main->since_ns) / 2;

	return f->since_ns <= main->since_ns + (slack > SAME_EVENT_NS ? slack : SAME_EVENT_NS);
}

/* A second answer to the same question: not what follows from the first. */
static bool is_alternative(const struct diagnosis *diag, const struct finding *f)
{
	const struct finding *m = diag->main;

	if (f->verdict_class == m->verdict_class || f->verdict_class == CW_CLASS_UNKNOWN ||
	    engine_context_explains(diag->s, m, f))
		return false;
	if (f->rank != CW_SNAP_NONE && diag->is_culprit[f->rank])
		return false;
	/* An error that follows from the main answer is no second answer. */
	if (f->has_failed && f->is_late)
		return false;
	/* The gate at which the odd calls meet does not open because of them. */
	if (m->verdict_class == CW_CLASS_MISMATCH && f->comm == m->comm)
		return false;
	return alternatives_same_event(diag->s->snap, m, f);
}

/*
 * A few ranks wait for most of the comm. Either most are held up, or the few made a call that
 * nobody else will ever make: the majority is the scene of the crime, not the criminal.
 */
static bool may_be_extra(const struct diagnosis *diag)
{
	const struct gate *gate;

	if (diag->main->verdict_class != CW_CLASS_NEVER_ENTERED)
		return false;
	gate = &diag->s->g.gates[diag->main->gate];
	return gate->kind == GATE_COLLECTIVE &&
	       gate->n_missing_all > diag->s->snap->comms[gate->comm].nranks / 2 &&
	       diag->v->n_culprits > gate->n_waiters;
}

static int add_extra(struct diagnosis *diag)
{
	struct cw_alternative *alt = &diag->v->alternatives[diag->v->n_alternatives];
	const struct gate *gate = &diag->s->g.gates[diag->main->gate];

	alt->verdict_class = CW_CLASS_MISMATCH;
	alt->culprits = cw_arena_memdup(diag->arena, gate->waiters, gate->n_waiters,
					sizeof(*gate->waiters));
	if (!alt->culprits)
		return -ENOMEM;
	alt->n_culprits = gate->n_waiters;
	diag->v->n_alternatives++;
	return 0;
}

/* Everybody is inside, and they do not have everything in common that they should. */
static int add_setup(struct diagnosis *diag)
{
	struct cw_alternative *alt = &diag->v->alternatives[diag->v->n_alternatives];
	const struct alignment *al = diag->main->setup;

	alt->verdict_class = CW_CLASS_MISMATCH;
	alt->culprits = cw_arena_new_array(diag->arena, uint32_t, al->n_compared);
	if (!alt->culprits)
		return -ENOMEM;
	alt->n_culprits = diagnosis_list_minority(al, alt->culprits);
	diag->v->n_alternatives++;
	return 0;
}

int alternatives_list(struct diagnosis *diag)
{
	struct cw_verdict *v = diag->v;
	uint32_t n = 0;

	for (uint32_t i = 0; i < diag->n_related; i++)
		n += is_alternative(diag, diag->related[i]);
	/* One more for add_extra() or add_setup(). */
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
	if (may_be_extra(diag) && add_extra(diag) < 0)
		return -ENOMEM;
	if (diag->main->setup && v->verdict_class != CW_CLASS_MISMATCH && add_setup(diag) < 0)
		return -ENOMEM;
	for (uint32_t k = 0; k < v->n_alternatives; k++) {
		struct cw_alternative *alt = &v->alternatives[k];

		align_sort_ranks(diag->s->snap, alt->culprits, alt->n_culprits);
		/* The main answer is preferred by its place in the order of classes, no more. */
		alt->probability = 0.3 / v->n_alternatives;
	}
	return 0;
}
