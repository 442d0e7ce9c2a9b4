/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "lab/suite/score.h"

static struct score score;

static void add(uint32_t want, uint32_t want_rank, uint32_t got, int32_t got_rank,
		uint32_t confidence)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8 };
	struct outcome o = { .is_alert = got != CW_CLASS_HEALTHY,
			     .verdict_class = got,
			     .culprits = &got_rank,
			     .n_culprits = 1,
			     .confidence = confidence };

	if (want != CW_CLASS_HEALTHY) {
		s.n_answers = 1;
		s.answers[0] = (struct suite_answer){ .verdict_class = (uint8_t)want,
						      .has_culprits = true };
		s.answers[0].culprits.n = 1;
		s.answers[0].culprits.ranges[0] = (struct suite_range){ want_rank, want_rank };
	}
	cw_score_add(&score, &s, &o);
}

static void fini(void)
{
	cw_score_fini(&score);
}

TestSuite(suite_score, .fini = fini);

Test(suite_score, counts_what_is_right)
{
	add(CW_CLASS_MISMATCH, 3, CW_CLASS_MISMATCH, 3, CW_CONFIDENCE_CERTAIN);
	add(CW_CLASS_HEALTHY, 0, CW_CLASS_HEALTHY, 0, CW_CONFIDENCE_CERTAIN);
	cr_expect(cw_score_is_perfect(&score));
	cr_expect_eq(score.n_certain, 1);
	cr_expect_eq(score.n_certain_wrong, 0);
	cr_expect_eq(score.n_controls, 1);
	cr_expect_eq(score.n_exact_culprits, 1);
}

Test(suite_score, a_wrong_rank_is_a_miss_and_a_wrong_certainty)
{
	add(CW_CLASS_MISMATCH, 3, CW_CLASS_MISMATCH, 4, CW_CONFIDENCE_CERTAIN);
	cr_expect(!cw_score_is_perfect(&score));
	cr_expect_eq(score.classes[CW_CLASS_MISMATCH].right, 1);
	cr_expect_eq(score.n_exact_culprits, 0);
	cr_expect_eq(score.n_culprits, 1);
	cr_expect_eq(score.n_certain_wrong, 1);
	cr_expect(strstr(score.misses[0].reason, "not of 3"), "%s", score.misses[0].reason);
}

Test(suite_score, a_wrong_class_costs_one_class_recall_and_the_other_precision)
{
	add(CW_CLASS_MISMATCH, 3, CW_CLASS_NEVER_ENTERED, 3, CW_CONFIDENCE_LIKELY);
	cr_expect_eq(score.classes[CW_CLASS_MISMATCH].expected, 1);
	cr_expect_eq(score.classes[CW_CLASS_MISMATCH].right, 0);
	cr_expect_eq(score.classes[CW_CLASS_NEVER_ENTERED].given, 1);
	cr_expect_eq(score.classes[CW_CLASS_NEVER_ENTERED].given_rightly, 0);
	cr_expect_eq(score.confusion[CW_CLASS_MISMATCH][CW_CLASS_NEVER_ENTERED], 1);
}

Test(suite_score, an_alert_on_a_control_is_a_miss)
{
	add(CW_CLASS_HEALTHY, 0, CW_CLASS_UNKNOWN, 0, CW_CONFIDENCE_POSSIBLE);
	cr_expect_eq(score.n_control_alerts, 1);
	cr_expect_eq(score.n_missed, 1);
}

/* The class and the rank are right, and no rank hung. */
Test(suite_score, a_page_after_which_it_went_on_is_a_false_one)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8, .n_answers = 1 };
	struct outcome o = { .is_alert = true,
			     .verdict_class = CW_CLASS_NEVER_ENTERED,
			     .confidence = CW_CONFIDENCE_LIKELY };

	s.answers[0].verdict_class = CW_CLASS_NEVER_ENTERED;
	cw_score_add(&score, &s, &o);
	cr_expect_eq(score.n_false_alerts, 0);
	o.went_on = true;
	cw_score_add(&score, &s, &o);
	cr_expect_eq(score.n_false_alerts, 1);
	cr_expect_eq(score.n_went_on, 1);
	cr_expect_eq(score.n_missed, 1);
	cr_expect_eq(score.classes[CW_CLASS_NEVER_ENTERED].given, 2);
	cr_expect_eq(score.classes[CW_CLASS_NEVER_ENTERED].given_rightly, 1);
}

/* Each wait counts where its length is, and apart from those of jobs without a time-out. */
Test(suite_score, healthy_waits_are_counted_by_their_length)
{
	const int64_t s = 1000000000;
	struct outcome_wait waits[] = { { 119 * s, 0, 1 }, { 120 * s, 1, 2 }, { 20000 * s, 2, 0 } };
	struct suite_scenario scenario = { .name = "s", .file = "f", .n_ranks = 8 };
	struct outcome o = { .healthy_waits = waits, .n_healthy_waits = 3 };
	const struct waits *counted = &score.healthy_waits;

	cw_score_add(&score, &scenario, &o);
	scenario.job_timeout_ns = 600 * s;
	o.n_healthy_waits = 2;
	cw_score_add(&score, &scenario, &o);
	cr_expect_eq(counted->none[0].n, 1);
	cr_expect_eq(counted->none[1].n, 1);
	cr_expect_eq(counted->none[1].n_paged, 1);
	cr_expect_eq(counted->none[1].n_often_noticed, 1);
	cr_expect_eq(counted->none[WAITS_LENGTHS - 1].false_pages, 2);
	scenario.job_timeout_ns = 3601 * s;
	cr_expect_eq(cw_waits_sum(counted->known).n, 2);
	o.n_healthy_waits = 1;
	cw_score_add(&score, &scenario, &o);
	cr_expect_eq(counted->longer[0].n, 1);
	cr_expect_eq(cw_waits_total(counted).n, 6);
	cr_expect_eq(cw_waits_total(counted).n_paged, 3);
	cr_expect_eq(cw_waits_total(counted).notices, 7);
}

/* Members that are through have not in common what the others have not: then those are named. */
Test(suite_score, who_did_not_finish_is_an_answer_beside_a_difference_where_somebody_is_named)
{
	struct suite_scenario s = { .name = "s",
				    .file = "f",
				    .n_ranks = 8,
				    .n_faults = 1,
				    .n_answers = 2,
				    .completion = SUITE_NCCL };
	int32_t wedged = 2, other = 4;
	struct outcome o = { .is_alert = true,
			     .verdict_class = CW_CLASS_IN_COLLECTIVE,
			     .confidence = CW_CONFIDENCE_LIKELY,
			     .culprits = &wedged,
			     .n_culprits = 1 };

	s.faults[0] = (struct suite_fault){ .action = SUITE_WEDGE,
					    .set = { .n = 1, .ranges = { { 2, 2 } } } };
	s.answers[0].verdict_class = CW_CLASS_MISMATCH;
	s.answers[1] = (struct suite_answer){ .verdict_class = CW_CLASS_IN_COLLECTIVE,
					      .has_culprits = true,
					      .is_nobody = true };
	cr_expect(cw_score_is_right(&s, &o));
	o.culprits = &other;
	cr_expect_not(cw_score_is_right(&s, &o));
	o.n_culprits = 0;
	cr_expect_not(cw_score_is_right(&s, &o), "no rank is through: then they differ");
	s.answers[1].incident = 1;
	cr_expect(cw_score_is_right(&s, &o), "of another incident");
	s.answers[0] = s.answers[1];
	s.n_answers = 1;
	cr_expect(cw_score_is_right(&s, &o));
}

Test(suite_score, silence_on_a_hang_is_a_miss)
{
	add(CW_CLASS_DEADLOCK, 0, CW_CLASS_HEALTHY, 0, 0);
	cr_expect_eq(score.n_missed, 1);
	cr_expect(strstr(score.misses[0].reason, "silence"), "%s", score.misses[0].reason);
}

/* Two incidents: a mismatch of rank 1, a deadlock of rank 2. */
static void add_two(const struct outcome *o)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8, .n_answers = 2 };

	for (uint32_t i = 0; i < 2; i++) {
		s.answers[i] = (struct suite_answer){
			.verdict_class = i ? CW_CLASS_DEADLOCK : CW_CLASS_MISMATCH,
			.incident = (uint8_t)i,
			.has_culprits = true,
		};
		s.answers[i].culprits.n = 1;
		s.answers[i].culprits.ranges[0] = (struct suite_range){ i + 1, i + 1 };
	}
	cw_score_add(&score, &s, o);
}

static struct outcome alert(uint32_t verdict_class, int32_t *rank, struct outcome *also)
{
	return (struct outcome){ .is_alert = true,
				 .verdict_class = verdict_class,
				 .culprits = rank,
				 .n_culprits = 1,
				 .confidence = CW_CONFIDENCE_CERTAIN,
				 .also = also };
}

Test(suite_score, several_incidents_are_right_in_any_order)
{
	int32_t one = 1, two = 2;
	struct outcome last = alert(CW_CLASS_MISMATCH, &one, NULL);
	struct outcome first = alert(CW_CLASS_DEADLOCK, &two, &last);

	add_two(&first);
	cr_expect(cw_score_is_perfect(&score));
	cr_expect_eq(score.n, 1);
	cr_expect_eq(score.classes[CW_CLASS_MISMATCH].right, 1);
	cr_expect_eq(score.classes[CW_CLASS_DEADLOCK].right, 1);
	cr_expect_eq(score.n_exact_culprits, 2);
	cr_expect_eq(score.n_certain, 2);
	cr_expect_eq(score.n_certain_wrong, 0);
}

Test(suite_score, a_proof_is_wrong_where_nobody_hung)
{
	struct suite_scenario control = { .name = "s", .file = "f", .n_ranks = 8 };
	int32_t one = 1, two = 2;
	struct outcome last = alert(CW_CLASS_MISMATCH, &one, NULL);
	struct outcome first = alert(CW_CLASS_DEADLOCK, &two, &last);

	first.hang = last.hang = CW_HANG_PROVEN;
	add_two(&first);
	cr_expect_eq(score.n_proven, 2);
	cr_expect_eq(score.n_proven_wrong, 0);
	first.went_on = true;
	add_two(&first);
	cr_expect_eq(score.n_proven, 4);
	cr_expect_eq(score.n_proven_wrong, 1, "it went on");
	last.culprits = &two; /* another rank, but it hangs */
	first.went_on = false;
	add_two(&first);
	cr_expect_eq(score.n_proven_wrong, 1);
	cw_score_add(&score, &control,
		     &(struct outcome){
			     .is_alert = true,
			     .verdict_class = CW_CLASS_MISMATCH,
			     .hang = CW_HANG_PROVEN,
		     });
	cr_expect_eq(score.n_proven, 7);
	cr_expect_eq(score.n_proven_wrong, 2, "all was well");
	last.hang = CW_HANG_LIKELY;
	add_two(&first);
	cr_expect_eq(score.n_proven, 8);
}

Test(suite_score, an_incident_that_is_not_told_is_a_miss)
{
	int32_t two = 2;
	struct outcome only = alert(CW_CLASS_DEADLOCK, &two, NULL);

	add_two(&only);
	cr_expect_eq(score.n_missed, 1);
	cr_expect(strstr(score.misses[0].reason, "silence, not mismatch"), "%s",
		  score.misses[0].reason);
	cr_expect_eq(score.classes[CW_CLASS_DEADLOCK].right, 1);
}

Test(suite_score, an_alert_too_many_is_a_miss)
{
	int32_t one = 1, two = 2, three = 3;
	struct outcome third = alert(CW_CLASS_UNKNOWN, &three, NULL);
	struct outcome second = alert(CW_CLASS_DEADLOCK, &two, &third);
	struct outcome first = alert(CW_CLASS_MISMATCH, &one, &second);

	add_two(&first);
	cr_expect_eq(score.n_missed, 1);
	cr_expect(strstr(score.misses[0].reason, "also said"), "%s", score.misses[0].reason);
	cr_expect_eq(score.classes[CW_CLASS_UNKNOWN].given, 1);
	cr_expect_eq(score.classes[CW_CLASS_UNKNOWN].given_rightly, 0);
	cr_expect_eq(score.n_certain_wrong, 1);
}

Test(suite_score, intervals_are_wilsons)
{
	double low, high;

	cw_score_interval(8, 10, &low, &high);
	cr_expect(low > 0.4901 && low < 0.4903, "%f", low);
	cr_expect(high > 0.9432 && high < 0.9434, "%f", high);
	cw_score_interval(10, 10, &low, &high);
	cr_expect(low > 0.7224 && low < 0.7226, "%f", low);
	cr_expect_eq(high, 1);
}

Test(suite_score, counts_what_was_written_not_what_it_is_repeated_over)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8 };
	struct outcome o = { 0 };
	uint64_t hangs, controls;

	for (s.line = 1; s.line <= 40; s.line++)
		for (unsigned i = 0; i < 3; i++)
			cw_score_add(&score, &s, &o);
	s.n_answers = 1;
	s.answers[0] = (struct suite_answer){ .verdict_class = CW_CLASS_UNKNOWN };
	cw_score_add(&score, &s, &o);
	cw_score_count_written(&score, &hangs, &controls);
	cr_expect_eq(hangs, 1);
	cr_expect_eq(controls, 40);
}

static struct suite_scenario with_notice(void)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8, .n_answers = 1 };

	s.answers[0] =
		(struct suite_answer){ .verdict_class = CW_CLASS_NEVER_ENTERED, .is_notice = true };
	return s;
}

Test(suite_score, a_notice_is_an_answer_where_one_is_expected)
{
	struct suite_scenario s = with_notice();
	struct outcome n = { .is_notice = true, .verdict_class = CW_CLASS_NEVER_ENTERED };
	struct outcome o = { .notices = &n };

	cw_score_add(&score, &s, &o);
	cr_expect(cw_score_is_perfect(&score) && cw_score_is_right(&s, &o));
	cr_expect_eq(score.n_notices, 1);
	cr_expect_eq(score.n_pages, 0);
	cr_expect_eq(score.n_controls, 1);
	n.verdict_class = CW_CLASS_MISMATCH;
	cw_score_add(&score, &s, &o);
	cr_expect_eq(score.n_missed, 1);
	cr_expect(strstr(score.misses[0].reason, "a notice of mismatch"), "%s",
		  score.misses[0].reason);
	o.notices = NULL;
	cw_score_add(&score, &s, &o);
	cr_expect_eq(score.n_missed, 2);
	s.has_no_notices = true;
	cw_score_add(&score, &s, &o);
	cr_expect_eq(score.n_missed, 2);
}

Test(suite_score, a_page_where_a_notice_is_expected_is_false)
{
	struct suite_scenario s = with_notice();
	struct outcome o = { .is_alert = true, .verdict_class = CW_CLASS_NEVER_ENTERED };

	cw_score_add(&score, &s, &o);
	cr_expect_eq(score.n_missed, 1);
	cr_expect_eq(score.n_false_alerts, 1);
	cr_expect_eq(score.n_control_alerts, 1);
	cr_expect_eq(score.n_pages, 1);
}

Test(suite_score, silence_or_a_page_takes_either)
{
	struct suite_scenario s = with_notice();
	struct outcome page = { .is_alert = true, .verdict_class = CW_CLASS_NEVER_ENTERED },
		       none = { 0 };

	s.answers[0].is_notice = false;
	s.may_be_silent = true;
	cw_score_add(&score, &s, &page);
	cw_score_add(&score, &s, &none);
	cr_expect(cw_score_is_perfect(&score));
	page.verdict_class = CW_CLASS_MISMATCH;
	cw_score_add(&score, &s, &page);
	cr_expect_eq(score.n_missed, 1);
	cr_expect_eq(score.n_false_alerts, 1);
}

static void add_with_fault(uint8_t action, uint32_t first, uint32_t last, uint32_t got)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8, .per_node = 2 };
	struct outcome o = { .is_alert = got != CW_CLASS_HEALTHY,
			     .verdict_class = got,
			     .confidence = CW_CONFIDENCE_LIKELY };

	s.n_faults = 1;
	s.faults[0].action = action;
	s.faults[0].set.n = 1;
	s.faults[0].set.ranges[0] = (struct suite_range){ first, last };
	cw_score_add(&score, &s, &o);
}

Test(suite_score, faults_of_the_cluster_have_a_count_of_their_own)
{
	add_with_fault(SUITE_NODE_CUT, 1, 1, CW_CLASS_HEALTHY);
	add_with_fault(SUITE_NODE_CUT, 0, 1, CW_CLASS_DEADLOCK);
	add_with_fault(SUITE_LEADER, 0, 0, CW_CLASS_HEALTHY);
	add_with_fault(SUITE_NODE_LOST, 1, 1, CW_CLASS_DEADLOCK); /* needs an alert */
	add(CW_CLASS_HEALTHY, 0, CW_CLASS_DEADLOCK, 0, CW_CONFIDENCE_LIKELY);
	cr_expect_eq(score.cluster[SCORE_NODE_AWAY].n, 1);
	cr_expect_eq(score.cluster[SCORE_NODE_AWAY].n_missed, 0);
	cr_expect_eq(score.cluster[SCORE_HALVES].n, 1);
	cr_expect_eq(score.cluster[SCORE_HALVES].n_missed, 1);
	cr_expect_eq(score.cluster[SCORE_HALVES].n_false_alerts, 1);
	cr_expect_eq(score.cluster[SCORE_LEADER_AWAY].n, 1);
	cr_expect_eq(score.n_missed, 3);
}

/* ---- how soon, and how surely ---- */

#define SECOND INT64_C(1000000000)

static void add_death(uint8_t action, uint64_t value, struct outcome *o)
{
	struct suite_scenario s = {
		.name = "s", .file = "f", .n_ranks = 8, .n_faults = 1, .n_answers = 1
	};
	static int32_t one = 1;

	s.faults[0] = (struct suite_fault){ .action = action,
					    .value = value,
					    .set = { .n = 1, .ranges = { { 1, 1 } } } };
	s.answers[0] = (struct suite_answer){ .verdict_class = CW_CLASS_PROCESS_DEAD,
					      .has_culprits = true,
					      .culprits = s.faults[0].set };
	o->is_alert = true;
	o->verdict_class = CW_CLASS_PROCESS_DEAD;
	o->culprits = &one;
	o->n_culprits = 1;
	cw_score_add(&score, &s, o);
}

/* Rank 1 is the culprit, hit at 10 s; rank 2 stands from waits_s on for so long. 0 = never. */
static struct outcome_rank *what_befell(int64_t waits_s, int64_t for_s)
{
	static struct outcome_rank ranks[8];

	memset(ranks, 0, sizeof(ranks));
	ranks[1] = (struct outcome_rank){ .hit_ns = 10 * SECOND, .until_ns = 10 * SECOND };
	ranks[2] = (struct outcome_rank){ .stood_ns = waits_s * SECOND,
					  .until_ns = (waits_s + for_s) * SECOND };
	return ranks;
}

Test(suite_score, proofs_are_counted_where_somebody_waits)
{
	struct outcome o = { .hang = CW_HANG_PROVEN,
			     .confidence = CW_CONFIDENCE_CERTAIN,
			     .alerted_ns = 17 * SECOND,
			     .proven_ns = 17 * SECOND,
			     .ranks = what_befell(12, 60),
			     .n_ranks = 8 };

	add_death(SUITE_KILL, 9, &o);
	cr_expect_eq(score.proofs.n, 1);
	cr_expect_eq(score.proofs.n_soon, 1, "the wait began after the fault");
	cr_expect_eq(score.proofs.n_certain, 1);
	o.proven_ns = 17 * SECOND + 1;
	o.confidence = CW_CONFIDENCE_LIKELY;
	add_death(SUITE_EXIT_NOW, 1, &o);
	cr_expect_eq(score.proofs.n, 2);
	cr_expect_eq(score.proofs.n_soon, 1, "too late");
	cr_expect_eq(score.proofs.n_right, 2);
	cr_expect_eq(score.proofs.n_certain, 1, "not sure");
	o.proven_ns = 0;
	add_death(SUITE_OOM, 0, &o);
	cr_expect_eq(score.proofs.n_soon, 1, "not proven");
	add_death(SUITE_EXIT_NOW, 0, &o);
	cr_expect_eq(score.proofs.n, 3, "it may have had nothing to do");
}

Test(suite_score, a_wait_is_one_that_lasts_longer_than_a_page_takes)
{
	struct outcome o = { .alerted_ns = 12 * SECOND, .proven_ns = 12 * SECOND, .n_ranks = 8 };

	o.ranks = what_befell(11, 5);
	add_death(SUITE_KILL, 9, &o);
	cr_expect_eq(score.proofs.n, 0, "its launcher ended it");
	o.ranks = what_befell(0, 0);
	add_death(SUITE_KILL, 9, &o);
	cr_expect_eq(score.proofs.n, 0, "nobody waits");
	cr_expect_eq(score.proofs.n_wrong_data, 0, "a death is none");
	o.ranks = what_befell(11, 6);
	o.ranks[2].group = 7;
	add_death(SUITE_KILL, 9, &o);
	cr_expect_eq(score.proofs.n, 0, "no communicator joins them");
	o.ranks[1].group = 7;
	add_death(SUITE_KILL, 9, &o);
	cr_expect_eq(score.proofs.n, 1);
}

static void add_mismatch(const struct outcome *o)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8, .n_answers = 1 };

	s.answers[0] = (struct suite_answer){ .verdict_class = CW_CLASS_MISMATCH,
					      .has_culprits = true,
					      .culprits = { .n = 1, .ranges = { { 1, 1 } } } };
	cw_score_add(&score, &s, o);
}

Test(suite_score, wrong_data_is_told_of_before_anybody_waits_and_proven_once_somebody_does)
{
	static int32_t one = 1;
	struct outcome o = { .is_alert = true,
			     .verdict_class = CW_CLASS_MISMATCH,
			     .culprits = &one,
			     .n_culprits = 1,
			     .alerted_ns = 14 * SECOND,
			     .ranks = what_befell(0, 0),
			     .n_ranks = 8 };

	add_mismatch(&o);
	cr_expect_eq(score.proofs.n, 0);
	cr_expect_eq(score.proofs.n_wrong_data, 1);
	cr_expect_eq(score.proofs.n_wrong_data_soon, 1);
	o.alerted_ns = 15 * SECOND + 1;
	add_mismatch(&o);
	cr_expect_eq(score.proofs.n_wrong_data, 2);
	cr_expect_eq(score.proofs.n_wrong_data_soon, 1, "too late");
	/* Told of at 14 s; from 30 s on a rank waits because of it. */
	o.alerted_ns = 14 * SECOND;
	o.ranks = what_befell(30, 60);
	add_mismatch(&o);
	cr_expect_eq(score.proofs.n_wrong_data_soon, 2);
	cr_expect_eq(score.proofs.n, 1);
	cr_expect_eq(score.proofs.n_soon, 0, "its incident never became a hang");
	o.proven_ns = 35 * SECOND;
	add_mismatch(&o);
	cr_expect_eq(score.proofs.n, 2);
	cr_expect_eq(score.proofs.n_soon, 1);
	/* A rank waits from the start: the page is of a hang, and late where it is not proven. */
	o.ranks = what_befell(11, 60);
	add_mismatch(&o);
	cr_expect_eq(score.proofs.n_wrong_data, 4);
	cr_expect_eq(score.proofs.n_soon, 1);
}

Test(suite_score, other_versions_and_variables_are_no_proof)
{
	static const enum cw_detail details[] = { CW_DETAIL_VERSION, CW_DETAIL_ENVIRONMENT,
						  CW_DETAIL_MEMBERSHIP, CW_DETAIL_COUNT };
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8, .n_answers = 1 };
	struct outcome o = { .ranks = what_befell(12, 60), .n_ranks = 8 };

	s.answers[0].verdict_class = CW_CLASS_MISMATCH;
	for (unsigned i = 0; i < 4; i++) {
		s.answers[0].detail = details[i];
		cw_score_add(&score, &s, &o);
		cr_expect_eq(score.proofs.n, i < 2 ? 0 : i - 1);
	}
}

Test(suite_score, what_is_missed_was_not_proven)
{
	struct suite_scenario s = { .name = "s", .file = "f", .n_ranks = 8, .n_answers = 1 };
	struct outcome o = { .ranks = what_befell(12, 60), .n_ranks = 8 };

	s.answers[0].verdict_class = CW_CLASS_DEADLOCK;
	cw_score_add(&score, &s, &o);
	cr_expect_eq(score.proofs.n, 1);
	cr_expect_eq(score.proofs.n_soon, 0);
	cr_expect_eq(score.proofs.n_right, 0);
}

Test(suite_score, a_second_alert_is_counted_as_one)
{
	int32_t one = 1, two = 2, three = 3;
	struct outcome third = alert(CW_CLASS_MISMATCH, &three, NULL);
	struct outcome second = alert(CW_CLASS_DEADLOCK, &two, &third);
	struct outcome first = alert(CW_CLASS_MISMATCH, &one, &second);

	add_two(&first);
	cr_expect_eq(score.n_second, 1);
	cr_expect_eq(score.n_false_alerts, 1);
	add(CW_CLASS_HEALTHY, 0, CW_CLASS_UNKNOWN, 0, CW_CONFIDENCE_POSSIBLE);
	cr_expect_eq(score.n_second, 1, "that one was the first");
	cr_expect_eq(score.n_false_alerts, 2);
}

Test(suite_score, pages_are_timed_by_class)
{
	struct score_times *t = &score.classes[CW_CLASS_PROCESS_DEAD].pages;
	struct outcome o = { .hang = CW_HANG_PROVEN };

	cr_expect_eq(cw_score_times_at(t, 50), 0);
	for (int64_t i = 20; i > 0; i--) {
		o.known_for_ns = i * SECOND;
		add_death(SUITE_KILL, 9, &o);
	}
	cr_expect_eq(cw_score_times_at(t, 50), 10 * SECOND);
	cr_expect_eq(cw_score_times_at(t, 95), 19 * SECOND);
	cr_expect_eq(cw_score_times_at(t, 100), 20 * SECOND);
}

/* ---- post-mortems ---- */

static uint64_t missed_with(struct outcome *postmortems, bool is_none_due)
{
	struct suite_scenario s = { .name = "s",
				    .file = "f",
				    .n_ranks = 8,
				    .has_no_postmortem = is_none_due,
				    .n_postmortems = !is_none_due };
	struct outcome o = { .postmortems = postmortems };
	uint64_t before = score.n_missed;

	s.postmortems[0] = (struct suite_answer){ .verdict_class = CW_CLASS_PROCESS_DEAD,
						  .detail = CW_DETAIL_EXITED,
						  .has_culprits = true };
	s.postmortems[0].culprits = (struct suite_set){ .n = 1, .ranges = { { 1, 1 } } };
	cw_score_add(&score, &s, &o);
	return score.n_missed - before;
}

Test(suite_score, a_postmortem_is_right_in_class_detail_and_ranks)
{
	int32_t one = 1, two = 2;
	struct outcome right = { .verdict_class = CW_CLASS_PROCESS_DEAD,
				 .detail = CW_DETAIL_EXITED,
				 .culprits = &one,
				 .n_culprits = 1 };
	struct outcome wrong = right;

	cr_expect_eq(missed_with(&right, false), 0);
	cr_expect_eq(missed_with(NULL, true), 0);
	cr_expect_eq(score.n_right_postmortems, 2);
	wrong.culprits = &two;
	cr_expect_eq(missed_with(&wrong, false), 1, "of another rank");
	wrong = right;
	wrong.verdict_class = CW_CLASS_NEVER_ENTERED;
	cr_expect_eq(missed_with(&wrong, false), 1, "of another class");
	wrong = right;
	wrong.detail = CW_DETAIL_KILLED;
	cr_expect_eq(missed_with(&wrong, false), 1, "of another detail");
	cr_expect_eq(missed_with(NULL, false), 1, "there is none");
	cr_expect_eq(missed_with(&right, true), 1, "none was due");
	right.also = &wrong;
	cr_expect_eq(missed_with(&right, false), 1, "of two, one is wrong");
	cr_expect_eq(score.n_postmortems, 8);
	cr_expect_eq(score.n_right_postmortems, 2);
}
