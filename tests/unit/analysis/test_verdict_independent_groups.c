/* SPDX-License-Identifier: Apache-2.0 */
/* Several troubles in one snapshot. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

static struct cw_verdict_list list;

static void teardown(void)
{
	cw_verdict_list_fini(&list);
	verdict_teardown();
}

TestSuite(verdict_independent_groups, .init = verdict_setup, .fini = teardown);

static void judge_all(void)
{
	snap = sb_snapshot(b);
	cr_assert_eq(cw_verdict_compute_all(snap, &list), 0);
}

static void expect_nth(uint32_t i, unsigned verdict_class, const char *culprits,
		       const char *victims)
{
	cr_assert_lt(i, list.n);
	cr_expect_eq(list.v[i].verdict_class, verdict_class, "%s: %s",
		     cw_class_name(list.v[i].verdict_class), said_text(&list.v[i].said));
	cr_expect_str_eq(sb_culprits(snap, &list.v[i]), culprits, "%s", said_text(&list.v[i].said));
	cr_expect_str_eq(sb_victims(snap, &list.v[i]), victims, "%s", said_text(&list.v[i].said));
}

Test(verdict_independent_groups, two_independent_groups_that_hang_get_a_verdict_each)
{
	struct sb_comm *one = sb_comm(b, "dp0", 0, 4, 1, 41), *two = sb_comm(b, "dp1", 4, 4, 1, 7);
	struct cw_verdict_key first, second;

	sb_all_wait_but(one, 1, 30 * SB_S);
	sb_all_wait_but(two, 2, 20 * SB_S);
	b->ranks[6].liveness = CW_LIVE_KILLED;
	b->ranks[6].ended_ns = SB_NOW - 20 * SB_S;
	judge_all();
	cr_assert_eq(list.n, 2);
	expect_nth(0, CW_CLASS_PROCESS_DEAD, "6", "4-5,7");
	expect_nth(1, CW_CLASS_NEVER_ENTERED, "1", "0,2-3");
	cr_expect_null(strstr(said_text(&list.v[0].said), "dp0"));
	cr_expect_null(strstr(said_text(&list.v[1].said), "dp1"));
	first = cw_verdict_key(snap, &list.v[0]);
	second = cw_verdict_key(snap, &list.v[1]);
	cr_expect_not(cw_verdict_key_is_same(&first, &second));
}

Test(verdict_independent_groups, first_of_several_is_the_verdict)
{
	struct sb_comm *one = sb_comm(b, "dp0", 0, 4, 1, 41), *two = sb_comm(b, "dp1", 4, 4, 1, 7);

	sb_all_wait_but(one, 1, 30 * SB_S);
	sb_all_wait_but(two, 2, 20 * SB_S);
	judge_all();
	cr_assert_eq(list.n, 2);
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	cr_expect_str_eq(said_text(&v.said), said_text(&list.v[0].said));
}

Test(verdict_independent_groups, whoever_waits_for_both_makes_them_one)
{
	struct sb_comm *one = sb_comm(b, "dp0", 0, 4, 1, 41), *two = sb_comm(b, "dp1", 4, 4, 1, 7);
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 100);

	sb_waits(one, 0, 30 * SB_S);
	sb_waits(two, 0, 20 * SB_S);
	sb_waits(world, 3, 20 * SB_S);
	sb_waits(world, 7, 20 * SB_S);
	judge_all();
	cr_expect_eq(list.n, 1);
}

Test(verdict_independent_groups, young_waits_are_no_second_trouble)
{
	struct sb_comm *one = sb_comm(b, "dp0", 0, 4, 1, 41), *two = sb_comm(b, "dp1", 4, 4, 1, 7);

	sb_all_wait_but(one, 1, 30 * SB_S);
	sb_all_wait_but(two, 2, SB_S / 10);
	judge_all();
	cr_expect_eq(list.n, 1);
}

static void make_histories_differ(uint32_t comm, uint32_t odd)
{
	for (uint32_t m = 0; m < snap->comms[comm].nranks; m++) {
		struct cw_snap_member *member = &snap->comms[comm].members[m];

		member->known &= ~(unsigned)CW_KNOWN_HASH;
		member->checkpoints[0] = (struct cw_checkpoint){ 32, m == odd ? 1 : 2 };
	}
}

Test(verdict_independent_groups, wrong_data_and_a_hang_elsewhere_are_two)
{
	struct sb_comm *one = sb_comm(b, "dp0", 0, 4, 1, 41);

	(void)sb_comm(b, "dp1", 4, 4, 1, 41);
	sb_all_wait_but(one, 1, 90 * SB_S);
	b->ranks[1].host_activity_ns = SB_NOW - 90 * SB_S;
	snap = sb_snapshot(b);
	make_histories_differ(1, 3);
	cr_assert_eq(cw_verdict_compute_all(snap, &list), 0);
	cr_assert_eq(list.n, 2);
	expect_nth(0, CW_CLASS_NEVER_ENTERED, "1", "0,2-3");
	expect_nth(1, CW_CLASS_MISMATCH, "7", "");
}

Test(verdict_independent_groups, rank_that_is_wrong_in_all_its_comms_is_told_once)
{
	(void)sb_comm(b, "world", 0, 8, 1, 41);
	(void)sb_comm(b, "dp1", 4, 4, 1, 41);
	snap = sb_snapshot(b);
	make_histories_differ(0, 7);
	make_histories_differ(1, 3);
	cr_assert_eq(cw_verdict_compute_all(snap, &list), 0);
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_MISMATCH, "7", "");
}

Test(verdict_independent_groups, healthy_job_has_one_healthy_verdict)
{
	(void)sb_comm(b, "world", 0, 8, 1, 41);
	judge_all();
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_HEALTHY, "", "");
}

/* Four ranks of an attempt that was killed in mid-call, and the four that took their place. */
static struct sb_comm *draw_restarted_job(void)
{
	struct sb_comm *before = sb_comm(b, "world", 0, 4, 1, 41);

	sb_all_wait_but(before, 1, 90 * SB_S);
	for (uint32_t i = 0; i < 4; i++) {
		b->ranks[i].liveness = CW_LIVE_KILLED;
		b->ranks[i].ended_ns = SB_NOW - 60 * SB_S;
		b->ranks[i + 4].rank = (int32_t)i;
	}
	return sb_comm(b, "world", 4, 4, 1, 7);
}

Test(verdict_independent_groups, attempt_before_a_restart_is_no_trouble)
{
	(void)draw_restarted_job();
	judge_all();
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_HEALTHY, "", "");
}

Test(verdict_independent_groups, hang_after_a_restart_is_told_without_the_ranks_before)
{
	sb_all_wait_but(draw_restarted_job(), 2, 20 * SB_S);
	judge_all();
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_NEVER_ENTERED, "2", "0-1,3");
	cr_assert_eq(list.v[0].n_culprits, 1);
	cr_expect_eq(list.v[0].culprits[0].rank, 6);
}

Test(verdict_independent_groups, more_troubles_than_fit_are_cut_off)
{
	sb_free(b);
	b = sb_new(40, 2);
	for (uint32_t i = 0; i < 20; i++)
		sb_all_wait_but(sb_comm(b, "pair", 2 * i, 2, 1, 41), 0, 30 * SB_S);
	judge_all();
	cr_expect_eq(list.n, CW_VERDICT_LIST_MAX);
}

/* Ranks 4 to 7 are one process; each has one waiting rank that shares no other comm. */
static void share_a_process(uint32_t liveness)
{
	for (uint32_t m = 0; m < 4; m++)
		sb_all_wait_but(sb_comm(b, "pair", m, 2, 4, 41), 1, 90 * SB_S);
	for (uint32_t m = 4; m < 8; m++) {
		b->ranks[m].node = b->ranks[4].node;
		b->ranks[m].pid = b->ranks[4].pid;
		b->ranks[m].start_ticks = 7;
		b->ranks[m].liveness = liveness;
		b->ranks[m].ended_ns = liveness == CW_LIVE_KILLED ? SB_NOW - 80 * SB_S : 0;
	}
}

Test(verdict_independent_groups, a_process_that_is_several_ranks_ends_once)
{
	share_a_process(CW_LIVE_KILLED);
	judge_all();
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_PROCESS_DEAD, "4-7", "0-3");
}

Test(verdict_independent_groups, a_process_that_is_several_ranks_is_stopped_once)
{
	share_a_process(CW_LIVE_STOPPED);
	judge_all();
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_NEVER_ENTERED, "4-7", "0-3");
}

/* As where one thread issues the calls of all its devices. */
Test(verdict_independent_groups, a_process_none_of_whose_ranks_comes_is_told_once)
{
	share_a_process(CW_LIVE_ALIVE);
	judge_all();
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_NEVER_ENTERED, "4-7", "0-3");
}

/*
 * Ranks 4 to 7 are one process. No rank waits for 6 and 7, and their last progress was idle_ns ago.
 */
static void two_are_not_waited_for(int64_t idle_ns)
{
	struct sb_comm *rest;

	for (uint32_t m = 0; m < 2; m++) {
		struct sb_comm *pair = sb_comm(b, "pair", m, 2, 4, 41);

		sb_all_wait_but(pair, 1, 90 * SB_S);
		pair->members[1].age_ns = 91 * SB_S;
	}
	rest = sb_comm(b, "rest", 6, 2, 1, 41);
	rest->members[0].age_ns = rest->members[1].age_ns = idle_ns;
	for (uint32_t m = 4; m < 8; m++) {
		b->ranks[m].node = b->ranks[4].node;
		b->ranks[m].pid = b->ranks[4].pid;
		b->ranks[m].start_ticks = 7;
	}
}

Test(verdict_independent_groups, ranks_of_its_process_that_stand_as_long_do_not_come_either)
{
	two_are_not_waited_for(95 * SB_S);
	judge_all();
	cr_assert_eq(list.n, 1);
	expect_nth(0, CW_CLASS_NEVER_ENTERED, "4-7", "0-1");
	cr_expect_eq(list.v[0].confidence, CW_CONFIDENCE_LIKELY, "no rank waits for two of them");
}

/* They have work of their own, or had none for long: the thread may be the same or another. */
Test(verdict_independent_groups,
     ranks_of_its_process_that_got_on_since_or_stood_before_are_not_named)
{
	static const int64_t idle_ns[] = { 20 * SB_S,  50 * SB_S,  70 * SB_S,
					   110 * SB_S, 130 * SB_S, 900 * SB_S };

	for (unsigned i = 0; i < sizeof(idle_ns) / sizeof(idle_ns[0]); i++) {
		two_are_not_waited_for(idle_ns[i]);
		judge_all();
		cr_assert_eq(list.n, 1);
		expect_nth(0, CW_CLASS_NEVER_ENTERED, "4-5", "0-1");
		cr_expect_eq(list.v[0].confidence, CW_CONFIDENCE_LIKELY);
		teardown();
		verdict_setup();
	}
}

Test(verdict_independent_groups, a_rank_of_its_process_in_a_call_is_not_named)
{
	two_are_not_waited_for(95 * SB_S);
	for (uint32_t m = 6; m < 8; m++) {
		b->ranks[m].host_call = b->comms[0]->usual;
		b->ranks[m].host_call.enter_ns = SB_NOW - 95 * SB_S;
	}
	judge_all();
	expect_nth(0, CW_CLASS_NEVER_ENTERED, "4-5", "0-1");
}
