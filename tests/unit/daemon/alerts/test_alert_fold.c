/* SPDX-License-Identifier: Apache-2.0 */
/* The number of messages that the engineer on call gets about one user's jobs. */
#include "daemon/alerts/alert_fold.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define BURST 5u
#define EVERY_NS (120 * CW_NS_PER_S)
#define WALL_NS (INT64_C(1790000000) * CW_NS_PER_S)

static struct cw_alert_fold *fold;
static int64_t now_ns;

static void setup(void)
{
	cr_assert_eq(cw_alert_fold_new(BURST, EVERY_NS, &fold), 0);
	now_ns = CW_NS_PER_S;
	cr_assert_not_null(fold);
}

static void teardown(void)
{
	fold = cw_alert_fold_free(fold);
}

TestSuite(alert_fold, .init = setup, .fini = teardown);

static enum cw_fold_answer ask(uint32_t uid, unsigned number)
{
	json_t *doc = json_pack("{s:s, s:s, s:s}", "job", number % 3 ? "name:train" : "name:eval",
				"class", "network", "summary", "rank 3 waits");
	enum cw_fold_answer answer;
	char id[32];

	(void)snprintf(id, sizeof(id), "%x", number);
	answer = cw_alert_fold_ask(fold, uid, id, doc, now_ns);
	json_decref(doc);
	return answer;
}

static bool next(struct cw_folded *ret)
{
	return cw_alert_fold_next(fold, now_ns, WALL_NS, ret);
}

Test(alert_fold, first_alerts_go_out_at_once_and_others_as_one)
{
	struct cw_folded folded;

	for (unsigned i = 0; i < BURST; i++)
		cr_expect_eq(ask(1000, i), CW_FOLD_SEND);
	for (unsigned i = BURST; i < BURST + 12; i++)
		cr_expect_eq(ask(1000, i), CW_FOLD_COLLECTED);
	cr_expect_eq(ask(1000, BURST), CW_FOLD_COLLECTED, "asked again");
	cr_expect_not(next(&folded));
	now_ns += EVERY_NS;
	cr_assert(next(&folded));
	cr_expect_eq(folded.n, 12);
	cr_expect_eq(json_integer_value(json_object_get(folded.doc, "count")), 12);
	cr_expect_eq(json_array_size(json_object_get(folded.doc, "incidents")), 12);
	cr_expect_str_eq(json_string_value(json_object_get(folded.doc, "summary")),
			 "12 more hangs of uid 1000 within 2 min: job train (8), eval (4)");
	cr_expect_not(next(&folded), "it is under way");
	cw_alert_fold_done(fold, 1000, true, now_ns);
	cr_expect_eq(cw_alert_fold_count(fold), 0);
}

Test(alert_fold, users_do_not_use_up_each_others_alerts)
{
	for (unsigned i = 0; i < 100; i++)
		(void)ask(1000, i);
	cr_expect_eq(ask(1001, 0), CW_FOLD_SEND);
}

Test(alert_fold, a_single_one_goes_out_as_it_is)
{
	struct cw_folded folded;

	for (unsigned i = 0; i <= BURST; i++)
		(void)ask(1000, i);
	now_ns += EVERY_NS;
	cr_assert(next(&folded));
	cr_expect_null(folded.doc);
	cr_expect_str_eq(json_string_value(json_object_get(folded.only, "summary")),
			 "rank 3 waits");
}

Test(alert_fold, what_was_not_delivered_is_told_the_next_time_with_what_came_meanwhile)
{
	struct cw_folded folded;

	for (unsigned i = 0; i < BURST + 3; i++)
		(void)ask(1000, i);
	now_ns += EVERY_NS;
	cr_assert(next(&folded));
	cr_expect_eq(ask(1000, 100), CW_FOLD_COLLECTED);
	cw_alert_fold_done(fold, 1000, false, now_ns);
	cr_expect_not(next(&folded));
	now_ns += EVERY_NS;
	cr_assert(next(&folded));
	cr_expect_eq(folded.n, 4);
}

Test(alert_fold, what_came_while_one_was_under_way_has_its_own_time)
{
	struct cw_folded folded;

	for (unsigned i = 0; i < BURST + 3; i++)
		(void)ask(1000, i);
	now_ns += EVERY_NS;
	cr_assert(next(&folded));
	(void)ask(1000, 100);
	(void)ask(1000, 101);
	cw_alert_fold_done(fold, 1000, true, now_ns);
	cr_expect_not(next(&folded));
	now_ns += EVERY_NS;
	cr_assert(next(&folded));
	cr_expect_eq(folded.n, 2);
	cr_expect_str_eq(folded.ids[1], "65");
}

Test(alert_fold, a_flood_is_at_most_burst_and_one_alert_a_period)
{
	unsigned sent = 0, collected = 0, told = 0, number = 0;
	struct cw_folded folded;

	/* 3.5 hangs a second for an hour. */
	for (unsigned tick = 0; tick < 2 * 3600; tick++) {
		for (unsigned i = 0; i < 1 + tick % 2 + tick % 4 / 2; i++) {
			enum cw_fold_answer answer = ask(1000, number++);

			sent += answer == CW_FOLD_SEND;
			collected += answer == CW_FOLD_COLLECTED;
		}
		now_ns += CW_NS_PER_S / 2;
		if (next(&folded)) {
			sent++;
			told += folded.n;
			cw_alert_fold_done(fold, 1000, true, now_ns);
		}
	}
	cr_expect_leq(sent, BURST + 3600 / 120 + 1, "%u messages", sent);
	cr_expect_leq(collected - told, cw_alert_fold_count(fold));
}

Test(alert_fold, alerts_by_other_nodes_count_too)
{
	for (unsigned i = 0; i < BURST; i++)
		cw_alert_fold_charge(fold, 1000, now_ns);
	cr_expect_eq(ask(1000, 0), CW_FOLD_COLLECTED);
	now_ns += EVERY_NS;
	cw_alert_fold_charge(fold, 1000, now_ns);
	/* Regardless of other users' alerts, it waits no longer than that. */
	cr_expect(next(&(struct cw_folded){ 0 }));
}

Test(alert_fold, rate_comes_back_with_time_and_with_failures)
{
	for (unsigned i = 0; i < BURST; i++)
		cr_expect_eq(ask(1000, i), CW_FOLD_SEND);
	now_ns += 2 * EVERY_NS;
	cr_expect_eq(ask(1000, 10), CW_FOLD_SEND);
	cr_expect_eq(ask(1000, 11), CW_FOLD_SEND);
	cw_alert_fold_refund(fold, 1000);
	cr_expect_eq(ask(1000, 11), CW_FOLD_SEND, "it failed, and is tried again");
	cr_expect_eq(ask(1000, 12), CW_FOLD_COLLECTED);
}

Test(alert_fold, one_user_leaves_room_for_what_others_collect)
{
	unsigned full = 0;

	for (uint32_t uid = 1; uid <= 8; uid++)
		for (unsigned i = 0; i < CW_FOLD_MAX; i++)
			full += ask(uid, i) == CW_FOLD_FULL;
	cr_expect_gt(full, 0);
	cr_expect_leq(cw_alert_fold_count(fold), CW_FOLD_MAX);
	for (unsigned i = 0; i < BURST; i++)
		cr_expect_eq(ask(100, i), CW_FOLD_SEND);
	cr_expect_eq(ask(100, BURST), CW_FOLD_COLLECTED);
}
