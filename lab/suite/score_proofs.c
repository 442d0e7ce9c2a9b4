/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/score_proofs.h"

/*
 * True if a fault ends some rank of the answer with a failure. A rank that exits with 0 may just
 * have had nothing to do.
 */
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

/*
 * True if the mismatch is one of calls. A job may run well with different versions or variables. So
 * only time shows that such a job hangs.
 */
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

static bool is_culprit(const struct suite_answer *a, uint32_t rank)
{
	return a->has_culprits && !a->is_nobody && cw_suite_set_has(&a->culprits, rank);
}

/*
 * True if a communicator, or a chain of them, connects the rank with a culprit. Without culprits it
 * is true for all ranks.
 */
static bool is_concerned(const struct suite_answer *a, const struct outcome *o, uint32_t rank)
{
	bool has_culprits = false;

	for (uint32_t i = 0; i < o->n_ranks; i++) {
		if (!is_culprit(a, i))
			continue;
		has_culprits = true;
		if (o->ranks[i].group == o->ranks[rank].group)
			return true;
	}
	return !has_culprits;
}

/*
 * The time when the fault became visible, and the start of a rank's wait because of it. 0 = never.
 */
struct known {
	int64_t fault_ns, wait_ns;
};

/*
 * Records the last fault of a relevant rank: of a culprit if a fault struck one, else of any rank
 * connected with a culprit.
 */
static void note_fault(struct known *k, const struct suite_answer *a, const struct outcome *o)
{
	bool is_named = false;

	for (uint32_t i = 0; i < o->n_ranks; i++)
		is_named |= is_culprit(a, i) && o->ranks[i].hit_ns;
	for (uint32_t i = 0; i < o->n_ranks; i++)
		if ((!is_named || is_culprit(a, i)) && is_concerned(a, o, i) &&
		    o->ranks[i].hit_ns > k->fault_ns)
			k->fault_ns = o->ranks[i].hit_ns;
}

/*
 * Records the first wait that the fault causes. We prefer waits of other ranks: a culprit that
 * waits alone may just be the first to reach the call. A wait that ends before a page is due does
 * not count.
 */
static void note_wait(struct known *k, const struct suite_answer *a, const struct outcome *o)
{
	for (int of_culprits = 0; of_culprits < 2 && !k->wait_ns; of_culprits++) {
		for (uint32_t i = 0; i < o->n_ranks; i++) {
			const struct outcome_rank *r = &o->ranks[i];
			int64_t from_ns = r->stood_ns > k->fault_ns ? r->stood_ns : k->fault_ns;

			if (!r->stood_ns || r->until_ns - from_ns <= SCORE_SOON_NS ||
			    is_culprit(a, i) != of_culprits || !is_concerned(a, o, i))
				continue;
			if (!k->wait_ns || r->stood_ns < k->wait_ns)
				k->wait_ns = r->stood_ns;
		}
	}
}

void cw_score_proofs_add(struct score_proofs *p, const struct suite_scenario *s,
			 const struct suite_answer *first, const struct outcome *o,
			 const struct outcome *truth, bool is_right)
{
	bool is_page = o && o->is_alert;
	struct known k = { 0 };
	int64_t since_ns;

	if (!can_be_proven(s, first))
		return;
	note_fault(&k, first, truth);
	note_wait(&k, first, truth);
	/*
	 * If no rank waited before the page, the page is about wrong data. If no rank ever waited,
	 * a page about wrong data should have come.
	 */
	if (first->verdict_class == CW_CLASS_MISMATCH && k.fault_ns &&
	    (!k.wait_ns || (is_page && o->alerted_ns < k.wait_ns))) {
		p->n_wrong_data++;
		p->n_wrong_data_soon += is_page && o->alerted_ns - k.fault_ns <= SCORE_SOON_NS;
	}
	if (!k.wait_ns)
		return;
	since_ns = k.wait_ns > k.fault_ns ? k.wait_ns : k.fault_ns;
	p->n++;
	p->n_soon += is_page && o->proven_ns && o->proven_ns - since_ns <= SCORE_SOON_NS;
	p->n_right += is_page && is_right;
	p->n_certain += is_page && is_right && o->confidence == CW_CONFIDENCE_CERTAIN;
}
