/* SPDX-License-Identifier: Apache-2.0 */
#include "suite/score_proofs.h"

/* Some rank of the answer is made to fail; one that exits with 0 may have had nothing to do. */
static bool fails(const struct suite_scenario *s, const struct suite_answer *a)
{
	for (uint32_t f = 0; f < s->n_faults; f++) {
		const struct suite_fault *fault = &s->faults[f];

		if (fault->action != SUITE_KILL && fault->action != SUITE_OOM &&
		    (fault->action != SUITE_EXIT_NOW || !fault->value))
			continue;
		for (uint32_t i = 0; i < s->n_ranks; i++)
			if (cw_suite_set_has(&fault->set, i) &&
			    (!a->has_culprits || cw_suite_set_has(&a->culprits, i)))
				return true;
	}
	return false;
}

/* Of other versions or variables a job may well run: that it stands is told by time. */
static bool is_of_calls(const struct suite_answer *a)
{
	return a->detail != CW_DETAIL_VERSION && a->detail != CW_DETAIL_ENVIRONMENT;
}

static bool can_be_proven(const struct suite_scenario *s, const struct suite_answer *a)
{
	return (a->verdict_class == CW_CLASS_MISMATCH && is_of_calls(a)) ||
	       a->verdict_class == CW_CLASS_DEADLOCK ||
	       (a->verdict_class == CW_CLASS_PROCESS_DEAD && fails(s, a));
}

void cw_score_proofs_add(struct score_proofs *p, const struct suite_scenario *s,
			 const struct suite_answer *first, const struct outcome *o, bool is_right,
			 bool holds_up)
{
	bool is_page = o && o->is_alert;

	if (!holds_up || !can_be_proven(s, first))
		return;
	p->n++;
	p->n_soon += is_page && o->hang == CW_HANG_PROVEN && o->known_for_ns <= SCORE_SOON_NS;
	p->n_right += is_page && is_right;
	p->n_certain += is_page && is_right && o->confidence == CW_CONFIDENCE_CERTAIN;
}
