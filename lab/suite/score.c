/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An outcome is right if it is one of the answers of an incident. It must have the class of the
 * answer, and its detail and culprits if the answer states them. Each incident gets the alert that
 * fits it best. An incident without an alert is missed. An alert without an incident is surplus.
 * The figures of a class come with their 95 % interval (Wilson).
 */
#include "lab/suite/score.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "model/rankset.h"
#include "model/signature.h"

void cw_score_interval(uint64_t k, uint64_t n, double *ret_low, double *ret_high)
{
	double z = 1.96, nn = (double)n, p, middle, half;

	*ret_low = 0;
	*ret_high = 1;
	if (n == 0)
		return;
	p = (double)k / nn;
	middle = (p + z * z / (2 * nn)) / (1 + z * z / nn);
	half = z * sqrt(p * (1 - p) / nn + z * z / (4 * nn * nn)) / (1 + z * z / nn);
	*ret_low = k == 0 ? 0 : middle - half;
	*ret_high = k == n ? 1 : middle + half;
}

/* ---- is it right? ---- */

static bool is_class_right(const struct suite_answer *a, const struct outcome *o)
{
	bool says = a->is_notice ? o->is_notice : cw_outcome_says(o);

	return says && o->verdict_class == a->verdict_class &&
	       (!a->detail || a->detail == o->detail);
}

/*
 * True if one of the outcome's culprits is a rank that a fault keeps from finishing a collective.
 */
static bool names_a_wedged(const struct suite_scenario *s, const struct outcome *o)
{
	for (uint32_t f = 0; f < s->n_faults; f++)
		for (uint32_t i = 0; s->faults[f].action == SUITE_WEDGE && i < o->n_culprits; i++)
			if (o->culprits[i] >= 0 &&
			    cw_suite_set_has(&s->faults[f].set, (uint32_t)o->culprits[i]))
				return true;
	return false;
}

/* Returns the first answer of an incident, which is the expected one; NULL = silence. */
static const struct suite_answer *first_answer(const struct suite_scenario *s, uint32_t incident)
{
	for (uint32_t i = 0; i < s->n_answers; i++)
		if (s->answers[i].incident == incident)
			return &s->answers[i];
	return NULL;
}

static bool are_culprits_right(const struct suite_scenario *s, const struct suite_answer *a,
			       const struct outcome *o)
{
	const struct suite_answer *first;
	uint32_t n = 0;

	if (!a->has_culprits)
		return true;
	/*
	 * If members complete one by one, a report may name the members that did not finish. One of
	 * them must be the cause, and the report must not be certain.
	 */
	if (a->is_nobody && a->verdict_class == CW_CLASS_IN_COLLECTIVE &&
	    s->completion == SUITE_NCCL && o->confidence != CW_CONFIDENCE_CERTAIN &&
	    names_a_wedged(s, o))
		return true;
	/*
	 * If the expected answer is a mismatch, this answer is right only in the case above. Then
	 * some members have finished, so the difference between members did not stop them, and the
	 * report names the others.
	 */
	first = first_answer(s, a->incident);
	if (a->is_nobody && a->verdict_class == CW_CLASS_IN_COLLECTIVE &&
	    s->completion == SUITE_NCCL && first && first->verdict_class == CW_CLASS_MISMATCH)
		return false;
	if (a->is_nobody)
		return o->n_culprits == 0;
	for (uint32_t i = 0; i < o->n_culprits; i++)
		if (o->culprits[i] < 0 || !cw_suite_set_has(&a->culprits, (uint32_t)o->culprits[i]))
			return false;
	for (uint32_t i = 0; i < s->n_ranks; i++)
		n += cw_suite_set_has(&a->culprits, i);
	return n == o->n_culprits;
}

#define ANY_INCIDENT UINT32_MAX

/*
 * Returns an answer of this incident with the class (and detail) of the outcome. We prefer an
 * answer with right culprits.
 */
static const struct suite_answer *matching(const struct suite_scenario *s, uint32_t incident,
					   const struct outcome *o)
{
	const struct suite_answer *best = NULL;

	for (uint32_t i = 0; o && i < s->n_answers; i++) {
		if ((incident != ANY_INCIDENT && s->answers[i].incident != incident) ||
		    !is_class_right(&s->answers[i], o))
			continue;
		if (are_culprits_right(s, &s->answers[i], o))
			return &s->answers[i];
		best = best ? best : &s->answers[i];
	}
	return best;
}

/*
 * Returns a notice that answers the first incident with the right culprits; NULL = there is none.
 */
static const struct outcome *right_notice(const struct suite_scenario *s, const struct outcome *o)
{
	for (const struct outcome *n = o->notices; n; n = n->also) {
		const struct suite_answer *match = matching(s, 0, n);

		if (match && are_culprits_right(s, match, n))
			return n;
	}
	return NULL;
}

bool cw_score_is_right(const struct suite_scenario *s, const struct outcome *o)
{
	const struct suite_answer *match = matching(s, ANY_INCIDENT, o);

	if (match && are_culprits_right(s, match, o))
		return true;
	if (cw_outcome_says(o))
		return false;
	return suite_is_control(s) ? !suite_expects_notice(s) || s->may_be_silent ||
					     s->has_no_notices || right_notice(s, o)
				   : right_notice(s, o) != NULL;
}

/* ---- misses ---- */

static void add_miss(struct score *score, const struct suite_scenario *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add_miss(struct score *score, const struct suite_scenario *s, const char *fmt, ...)
{
	struct score_miss *m;
	va_list ap;

	score->n_missed++;
	if (score->n_misses == SCORE_KEPT_MISSES)
		return;
	if (score->n_misses == score->cap_misses) {
		score->cap_misses = score->cap_misses ? score->cap_misses * 2 : 16;
		score->misses = cw_or_exit(
			reallocarray(score->misses, score->cap_misses, sizeof(*score->misses)));
	}
	m = &score->misses[score->n_misses++];
	m->scenario = cw_or_exit(strdup(s->name));
	m->where = cw_or_exit_printf("%s:%u", s->file, s->line);
	va_start(ap, fmt);
	m->reason = cw_or_exit_vprintf(fmt, ap);
	va_end(ap);
}

void cw_score_fini(struct score *score)
{
	for (size_t i = 0; i < score->n_misses; i++) {
		free(score->misses[i].scenario);
		free(score->misses[i].where);
		free(score->misses[i].reason);
	}
	free(score->misses);
	free(score->places);
	for (unsigned k = 0; k < SCORE_LABELS; k++)
		cw_score_times_fini(&score->classes[k].pages);
	*score = (struct score){ 0 };
}

static const char *expected_culprits(const struct suite_scenario *s, const struct suite_answer *a,
				     char *buf, size_t len)
{
	int32_t *ranks;
	size_t n = 0;

	(void)snprintf(buf, len, "%s", a->has_culprits ? "nobody" : "anybody");
	if (!a->has_culprits || a->is_nobody)
		return buf;
	ranks = cw_or_exit(calloc(s->n_ranks, sizeof(*ranks)));
	for (uint32_t i = 0; i < s->n_ranks; i++)
		if (cw_suite_set_has(&a->culprits, i))
			ranks[n++] = (int32_t)i;
	(void)cw_rankset_format(ranks, n, buf, len);
	free(ranks);
	return buf;
}

#define FAULT_MISSING "a fault of this scenario never happened"

static void judge_control(struct score *score, const struct suite_scenario *s,
			  const struct outcome *o)
{
	if (o->is_alert)
		add_miss(score, s, "alert on a control: %s", o->summary);
	else if (o->is_fault_missing)
		add_miss(score, s, FAULT_MISSING);
	else if (o->is_slow)
		add_miss(score, s, "no rank is slow: %s", o->summary);
}

static void judge_silence(struct score *score, const struct suite_scenario *s,
			  const struct outcome *o, const struct suite_answer *first)
{
	char want[96];

	if (o->is_fault_missing && !o->is_alert)
		add_miss(score, s, FAULT_MISSING);
	else
		add_miss(score, s, "silence, not %s %s", cw_class_name(first->verdict_class),
			 expected_culprits(s, first, want, sizeof(want)));
}

/* Judges one outcome. `first` is the expected answer. */
static void judge(struct score *score, const struct suite_scenario *s, const struct outcome *o,
		  const struct suite_answer *first, const struct suite_answer *match)
{
	char want[96], got[96];

	(void)expected_culprits(s, match ? match : first, want, sizeof(want));
	(void)cw_rankset_format(o->culprits, o->n_culprits, got, sizeof(got));
	if (!match)
		add_miss(score, s, "%s/%s %s (%s), not %s/%s %s: %s",
			 cw_class_name(o->verdict_class), cw_detail_name(o->detail), got,
			 cw_confidence_name(o->confidence), cw_class_name(first->verdict_class),
			 cw_detail_name(first->detail), want, o->summary);
	else if (!are_culprits_right(s, match, o))
		add_miss(score, s, "%s of %s (%s), not of %s: %s", cw_class_name(o->verdict_class),
			 got, cw_confidence_name(o->confidence), want, o->summary);
}

/* ---- counting ---- */

/*
 * Records the kinds of op that fail: those that the faults name, or else all that the programs
 * call.
 */
static void note_coverage(struct score *score, const struct suite_scenario *s,
			  uint32_t verdict_class)
{
	bool kinds[CW_OP__MAX] = { false };
	bool any = false;

	for (uint32_t i = 0; i < s->n_faults; i++)
		if (s->faults[i].op_kind)
			any = kinds[s->faults[i].op_kind] = true;
	for (uint32_t p = 0; p < s->n_programs && !any; p++)
		for (uint32_t i = 0; i < s->programs[p].n_insns; i++)
			if (s->programs[p].insns[i].kind == SUITE_CALL)
				kinds[s->programs[p].insns[i].call.kind] = true;
	score->class_layout[verdict_class][s->layout]++;
	for (unsigned k = 0; k < CW_OP__MAX; k++) {
		score->class_kind[verdict_class][k] += kinds[k];
		score->kind_layout[k][s->layout] += kinds[k];
	}
}

static uint64_t place_id(const struct suite_scenario *s)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, s->line);

	for (const char *p = s->file; *p; p++)
		h = cw_hash_step(h, (uint8_t)*p);
	return h;
}

static void note_place(struct score *score, const struct suite_scenario *s)
{
	struct score_place place = { .id = place_id(s), .is_control = suite_is_control(s) };
	size_t low = 0, high = score->n_places;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (score->places[mid].id < place.id)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < score->n_places && score->places[low].id == place.id)
		return;
	if (score->n_places == score->cap_places) {
		score->cap_places = score->cap_places ? score->cap_places * 2 : 64;
		score->places =
			cw_or_exit(reallocarray(score->places, score->cap_places, sizeof(place)));
	}
	memmove(&score->places[low + 1], &score->places[low],
		(score->n_places - low) * sizeof(place));
	score->places[low] = place;
	score->n_places++;
}

void cw_score_count_written(const struct score *score, uint64_t *ret_hangs, uint64_t *ret_controls)
{
	*ret_hangs = *ret_controls = 0;
	for (size_t i = 0; i < score->n_places; i++)
		*(score->places[i].is_control ? ret_controls : ret_hangs) += 1;
}

/*
 * Counts one incident, or a control (first = NULL). Another allowed answer counts like the expected
 * one.
 */
static void count_one(struct score *score, const struct suite_scenario *s, const struct outcome *o,
		      const struct suite_answer *first)
{
	const struct suite_answer *match = first ? matching(s, first->incident, o) : NULL;
	uint32_t want = first ? first->verdict_class : CW_CLASS_HEALTHY;
	uint32_t got = o ? o->verdict_class : CW_CLASS_HEALTHY;
	bool right = match && are_culprits_right(s, match, o);

	score->confusion[want][match ? want : got]++;
	score->classes[want].expected++;
	score->classes[want].right += match || want == got;
	score->classes[got].given++;
	score->classes[got].given_rightly += match || want == got;
	if (match && o->is_alert)
		cw_score_times_add(&score->classes[got].pages, o->known_for_ns);
	if (first && o) {
		/* The culprits may be right although the class is wrong. */
		score->n_culprits++;
		score->n_exact_culprits += right || are_culprits_right(s, first, o);
	}
	if (o && o->is_alert && o->confidence == CW_CONFIDENCE_CERTAIN) {
		score->n_certain++;
		score->n_certain_wrong += !right;
	}
	if (o && o->is_alert && o->hang == CW_HANG_PROVEN) {
		score->n_proven++;
		score->n_proven_wrong += !first || o->went_on;
	}
	if (first && o)
		judge(score, s, o, first, match);
}

/* Counts an expected page after which the job went on without help, so no rank hung. */
static void count_went_on(struct score *score, const struct suite_scenario *s, uint32_t incident,
			  const struct outcome *o)
{
	score->n_went_on++;
	score->n_false_alerts++;
	score->classes[o->verdict_class].given_rightly -= matching(s, incident, o) != NULL;
	add_miss(score, s, "a page, and it went on: %s", o->summary);
}

/* Counts a surplus report. */
static void count_surplus(struct score *score, const struct suite_scenario *s,
			  const struct outcome *o)
{
	count_one(score, s, o, NULL);
	score->n_false_alerts += o->is_alert;
	score->n_second += o->is_alert;
	add_miss(score, s, "also said: %s", o->summary);
}

/*
 * Returns how well an outcome answers the incident: 2 = it is right, 1 = its class is right, 0 = it
 * does not fit.
 */
static int fitness(const struct suite_scenario *s, uint32_t incident, const struct outcome *o)
{
	const struct suite_answer *match = matching(s, incident, o);

	return !match ? 0 : are_culprits_right(s, match, o) ? 2 : 1;
}

/*
 * Gives each incident the alert that fits it best. Alerts that fit none go to incidents that have
 * no alert.
 */
static void share_out(const struct suite_scenario *s, const struct outcome **said, uint32_t n,
		      const struct outcome **ret)
{
	for (int least = 2; least >= 0; least--)
		for (uint32_t i = 0; i < suite_n_incidents(s); i++)
			for (uint32_t k = 0; k < n && !ret[i]; k++) {
				if (!said[k] || fitness(s, i, said[k]) < least)
					continue;
				ret[i] = said[k];
				said[k] = NULL;
			}
}

/* Judges a notice: no user may be paged, but the notice must be there. */
static void judge_notice(struct score *score, const struct suite_scenario *s,
			 const struct outcome *o)
{
	const struct suite_answer *first = &s->answers[0];
	const struct outcome *n = o->notices;
	char want[96], got[96];

	if (o->is_fault_missing) {
		add_miss(score, s, FAULT_MISSING);
		return;
	}
	if (s->may_be_silent || s->has_no_notices || right_notice(s, o))
		return;
	(void)expected_culprits(s, first, want, sizeof(want));
	if (!n) {
		add_miss(score, s, "silence, not a notice of %s %s",
			 cw_class_name(first->verdict_class), want);
		return;
	}
	(void)cw_rankset_format(n->culprits, n->n_culprits, got, sizeof(got));
	add_miss(score, s, "a notice of %s/%s %s, not of %s/%s %s: %s",
		 cw_class_name(n->verdict_class), cw_detail_name(n->detail), got,
		 cw_class_name(first->verdict_class), cw_detail_name(first->detail), want,
		 n->summary);
}

static void count_incidents(struct score *score, const struct suite_scenario *s,
			    const struct outcome *first)
{
	const struct outcome *said[CW_VERDICT_LIST_MAX] = { 0 }, *of[SUITE_MAX_ANSWERS] = { 0 };
	uint32_t n = 0;

	for (const struct outcome *o = first; o && n < CW_VERDICT_LIST_MAX; o = o->also)
		if (cw_outcome_says(o))
			said[n++] = o;
	share_out(s, said, n, of);
	if (!of[0])
		of[0] = right_notice(s, first);
	for (uint32_t i = 0; i < suite_n_incidents(s); i++) {
		count_one(score, s, of[i], first_answer(s, i));
		if (!of[i])
			judge_silence(score, s, first, first_answer(s, i));
		cw_score_proofs_add(&score->proofs, s, first_answer(s, i), of[i], first,
				    of[i] && fitness(s, i, of[i]) == 2);
	}
	for (uint32_t i = 0; i < suite_n_incidents(s); i++)
		if (of[i] && of[i]->went_on)
			count_went_on(score, s, i, of[i]);
	for (uint32_t k = 0; k < n; k++)
		if (said[k])
			count_surplus(score, s, said[k]);
}

static void add(struct score *score, const struct suite_scenario *s, const struct outcome *o)
{
	const struct outcome *said = cw_outcome_says(o) ? o : NULL;
	bool is_control;

	/* A scenario is a control if silence is right and no report is one of the answers. */
	is_control = suite_is_control(s) && !(said && matching(s, ANY_INCIDENT, said));
	score->n++;
	score->n_hanging_waits += suite_is_hanging_wait(s);
	score->n_usual_waits += suite_is_hanging_wait(s) && s->is_usual_wait;
	for (uint32_t i = 0; i < o->n_healthy_waits; i++)
		cw_waits_add(&score->healthy_waits, s->job_timeout_ns, &o->healthy_waits[i]);
	for (const struct outcome *also = said; also; also = also->also)
		score->n_pages += also->is_alert;
	for (const struct outcome *n = o->notices; n; n = n->also)
		score->n_notices++;
	note_coverage(score, s, s->n_answers ? s->answers[0].verdict_class : CW_CLASS_HEALTHY);
	note_place(score, s);
	score->n_hangs += !is_control;
	score->n_controls += is_control;
	score->n_control_alerts += is_control && o->is_alert;
	/*
	 * If members complete one by one, buffers may absorb the effect of a fault. The cluster
	 * then knows that the fault held up no rank, so silence is right.
	 */
	if (!is_control && suite_n_incidents(s) == 1 && !said && o->is_well &&
	    !o->is_fault_missing && s->completion == SUITE_NCCL &&
	    s->answers[0].verdict_class != CW_CLASS_SLOW) {
		count_one(score, s, NULL, NULL);
		return;
	}
	if (!is_control) {
		count_incidents(score, s, o);
		return;
	}
	for (const struct outcome *also = o; also; also = also->also)
		score->n_false_alerts += also->is_alert;
	count_one(score, s, said, NULL);
	if (s->n_answers && !said)
		judge_notice(score, s, o);
	else
		judge_control(score, s, o);
}

/* ---- post-mortems ---- */

static bool is_postmortem_right(const struct suite_scenario *s, const struct outcome *o)
{
	for (uint32_t i = 0; i < s->n_postmortems; i++) {
		const struct suite_answer *a = &s->postmortems[i];

		if (o->verdict_class == a->verdict_class &&
		    (!a->detail || a->detail == o->detail) && are_culprits_right(s, a, o))
			return true;
	}
	return false;
}

static void judge_postmortem(struct score *score, const struct suite_scenario *s,
			     const struct outcome *o)
{
	const struct suite_answer *want = &s->postmortems[0];
	char wanted[96], got[96];

	if (s->has_no_postmortem) {
		add_miss(score, s, "a post-mortem: %s", o->summary);
		return;
	}
	(void)cw_rankset_format(o->culprits, o->n_culprits, got, sizeof(got));
	add_miss(score, s, "a post-mortem of %s/%s %s, not of %s/%s %s: %s",
		 cw_class_name(o->verdict_class), cw_detail_name(o->detail), got,
		 cw_class_name(want->verdict_class), cw_detail_name(want->detail),
		 expected_culprits(s, want, wanted, sizeof(wanted)), o->summary);
}

/* Counts the post-mortem of a job. The job's pages do not matter here. */
static void count_postmortems(struct score *score, const struct suite_scenario *s,
			      const struct outcome *o)
{
	bool is_right = s->n_postmortems == 0 || o->postmortems;
	char want[96];

	if (!suite_expects_postmortem(s))
		return;
	for (const struct outcome *e = o->postmortems; e; e = e->also) {
		if (is_postmortem_right(s, e))
			continue;
		is_right = false;
		judge_postmortem(score, s, e);
	}
	if (s->n_postmortems && !o->postmortems)
		add_miss(score, s, "no post-mortem, not one of %s %s",
			 cw_class_name(s->postmortems[0].verdict_class),
			 expected_culprits(s, &s->postmortems[0], want, sizeof(want)));
	score->n_postmortems++;
	score->n_right_postmortems += is_right;
}

void cw_score_add(struct score *score, const struct suite_scenario *s, const struct outcome *o)
{
	uint64_t missed = score->n_missed, false_alerts = score->n_false_alerts;
	uint32_t kinds = cw_score_cluster_kinds(s);

	add(score, s, o);
	count_postmortems(score, s, o);
	for (unsigned k = 0; k < SCORE_CLUSTER__MAX; k++) {
		if (!(kinds & 1u << k))
			continue;
		score->cluster[k].n++;
		score->cluster[k].n_missed += score->n_missed - missed;
		score->cluster[k].n_false_alerts += score->n_false_alerts - false_alerts;
	}
}
