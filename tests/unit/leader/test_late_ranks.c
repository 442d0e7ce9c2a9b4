/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of half a minute each, at a job of four ranks on two nodes. */
#include "leader/late_ranks.h"

#include <criterion/criterion.h>
#include <string.h>

#include "model/verdict_types.h"
#include "tests/support/snapshot/snap_builder.h"

static struct cw_snapshot *snap;
static struct cw_late_ranks late;
static struct cw_late_rank over[CW_SLOW_MAX];
static uint32_t confidence = CW_CONFIDENCE_LIKELY;

static void set_up(void)
{
	struct cw_snap_comm comm = { .id = 7, .nranks = 4, .name = "dp" };
	uint32_t index;

	snap = cw_snapshot_new();
	cr_assert(snap);
	snap->now_ns = SB_NOW;
	snap->wall_ns = cw_wall_parse("2026-11-21T14:02:33.123Z");
	cr_assert_eq(cw_snapshot_add_node(snap, "node-a", &index), 0);
	cr_assert_eq(cw_snapshot_add_node(snap, "node-b", &index), 0);
	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct cw_snap_rank rank = { .rank = (int32_t)i,
					     .node = i / 2,
					     .pid = 70 + (int32_t)i };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
}

static void tear_down(void)
{
	snap = cw_snapshot_free(snap);
}

TestSuite(late_ranks, .init = set_up, .fini = tear_down);

/* A sample that finds these; returns whom to tell of. */
static const struct cw_late_rank *sample(uint32_t n, const uint32_t *ranks, uint32_t *ret_n_over)
{
	struct cw_slow_list list = { .n = n };

	for (uint32_t i = 0; i < n; i++)
		list.v[i] = (struct cw_slow){ .rank = ranks[i],
					      .confidence = confidence,
					      .n_ops = 50,
					      .n_late = 48,
					      .late_ns = 140 * CW_NS_PER_MS,
					      .percent = 20 - ranks[i] };
	snap->now_ns += LATE_RANKS_EVERY_NS;
	*ret_n_over = late_ranks_add_sample(&late, snap, &list, over);
	return late_ranks_next_notice(&late, snap->now_ns);
}

/* On another host, so its clock may be the reason. */
Test(late_ranks, who_is_only_possibly_late_is_shown_and_not_told_of)
{
	static const uint32_t two = 2;
	uint32_t n_over;

	confidence = CW_CONFIDENCE_POSSIBLE;
	for (unsigned i = 0; i < 4; i++)
		cr_expect_null(sample(1, &two, &n_over));
	cr_expect(cw_late_rank_is_confirmed(&late.v[0]));
	confidence = CW_CONFIDENCE_LIKELY;
	cr_expect_not_null(sample(1, &two, &n_over));
}

Test(late_ranks, is_told_once_after_the_second_sample)
{
	const uint32_t three[] = { 3 };
	const struct cw_late_rank *noticed;
	char text[512];
	uint32_t n;

	cr_assert_null(sample(1, three, &n));
	snap->wall_ns += 30 * CW_NS_PER_S;
	noticed = sample(1, three, &n);
	cr_assert_not_null(noticed);
	late_ranks_format(&late, noticed, text, sizeof(text));
	cr_assert_str_eq(
		text,
		"rank 3 (node-b, pid 73) is late: 140 ms on average in 96 % of the collectives on "
		"dp since 14:02 UTC; the others wait for it 17 % of the time (likely)");
	for (unsigned i = 0; i < 100; i++)
		cr_assert_null(sample(1, three, &n));
	cr_assert_eq(n, 0);
}

/* By chance another rank is late at each sample. */
Test(late_ranks, by_turns_nobody_is)
{
	uint32_t n;

	for (uint32_t i = 0; i < 100; i++) {
		const uint32_t one[] = { i % 4 };

		cr_assert_null(sample(1, one, &n));
		cr_assert_eq(n, 0);
		cr_assert_eq(late.n, 1);
	}
}

Test(late_ranks, is_over_after_two_samples_without)
{
	const uint32_t one[] = { 1 };
	uint32_t n;

	(void)sample(1, one, &n);
	cr_assert_not_null(sample(1, one, &n));
	(void)sample(0, NULL, &n);
	cr_assert_eq(n, 0);
	cr_assert(cw_late_rank_is_confirmed(&late.v[0]));
	(void)sample(0, NULL, &n);
	cr_assert_eq(n, 1);
	cr_assert_eq(over[0].rank, 1);
	cr_assert_eq(late.n, 0);
}

Test(late_ranks, of_several_the_costliest_is_told_and_the_rest_counted)
{
	const uint32_t two[] = { 0, 2 };
	const struct cw_late_rank *noticed;
	char text[512];
	uint32_t n;

	(void)sample(2, two, &n);
	noticed = sample(2, two, &n);
	cr_assert_not_null(noticed);
	cr_assert_eq(noticed->rank, 0);
	late_ranks_format(&late, noticed, text, sizeof(text));
	cr_assert_not_null(strstr(text, "; 1 other rank is late, too"));
	cr_assert_null(sample(2, two, &n));
}

/* On for a minute, off for a minute, for an hour. */
Test(late_ranks, notices_of_a_job_are_ten_minutes_apart)
{
	const uint32_t one[] = { 1 };
	unsigned n_noticed = 0;
	uint32_t n;

	for (unsigned i = 0; i < 120; i++)
		n_noticed += sample(i / 2 % 2 == 0, one, &n) != NULL;
	cr_assert_geq(n_noticed, 4);
	cr_assert_leq(n_noticed, 6);
}

Test(late_ranks, nothing_new_is_not_sampled)
{
	late.asked_ns = SB_NOW;
	cr_assert_not(
		late_ranks_is_due(&late, SB_NOW + LATE_RANKS_EVERY_NS, LATE_RANKS_CALLS_MIN - 1));
	cr_assert(late_ranks_is_due(&late, SB_NOW + LATE_RANKS_EVERY_NS, LATE_RANKS_CALLS_MIN));
	late.calls = 100;
	cr_assert_not(late_ranks_is_due(&late, SB_NOW + LATE_RANKS_EVERY_NS - 1, 1000));
	cr_assert(late_ranks_is_due(&late, SB_NOW + LATE_RANKS_EVERY_NS, 1000));
	cr_assert_not(late_ranks_is_due(&late, SB_NOW + 10 * LATE_RANKS_EVERY_NS, 101));
}

Test(late_ranks, more_than_there_is_room_for_are_omitted)
{
	struct cw_slow_list list = { .n = CW_SLOW_MAX };

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < CW_SLOW_MAX; i++)
			list.v[i].rank = i % 4;
		for (uint32_t i = 0; i < 4; i++)
			snap->ranks[i].pid += 100;
		cr_assert_leq(late_ranks_add_sample(&late, snap, &list, over), CW_SLOW_MAX);
		cr_assert_eq(late.n, 4);
	}
}
