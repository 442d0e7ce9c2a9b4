/* SPDX-License-Identifier: Apache-2.0 */
/* Which ops of a busy stream get progress writes, on a clock of its own. */
#include <criterion/criterion.h>
#include <string.h>

#include "agent/cuda/progress_budget.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)

static struct cw_progress_budget slot;
static uint64_t now = 100 * S; /* as after a while of uptime */
static uint64_t ops, written, newest_written;

/* One op that takes the host no time; true = it got writes. */
static bool op(uint32_t spot)
{
	unsigned since = cw_progress_budget_leave_out(&slot, spot, ++ops, now);

	if (since) {
		cr_assert_eq(since, ops - newest_written, "the reader is told where to look");
		cr_assert_leq(since, CW_REC_SLOT_SINCE_MAX);
		cw_progress_budget_return(&slot, now);
		return false;
	}
	cw_progress_budget_open(&slot, ops, now);
	cw_progress_budget_close(&slot, ops, now);
	newest_written = ops;
	written++;
	return true;
}

static void many(unsigned n, uint32_t spot, uint64_t each_ns)
{
	for (unsigned i = 0; i < n; i++, now += each_ns)
		(void)op(spot);
}

/* Uses up what is in hand. */
static void make_busy(void)
{
	many(20000, 1, 20 * US);
	written = 0;
}

static uint32_t spot_of(unsigned n)
{
	return cw_progress_budget_spot(1, n, &slot);
}

Test(agent_progress_budget, keeps_a_busy_stream_within_its_budget)
{
	uint64_t begin = now, allowed;

	many(100000, spot_of(1), 100 * US);
	allowed =
		(now - begin + CW_PROGRESS_BUDGET_IN_HAND_NS) / CW_PROGRESS_BUDGET_PAIR_EARNED_NS +
		CW_PROGRESS_BUDGET_FIRST_OPS;
	cr_expect_leq(written, allowed, "%lu of %lu", written, allowed);
	cr_expect_geq(written, allowed - 100, "and uses it: %lu of %lu", written, allowed);
}

Test(agent_progress_budget, writes_one_in_sixteen_however_busy)
{
	make_busy();
	many(100000, spot_of(1), 2 * US);
	cr_expect_leq(written, 100000 / 16 + 200, "%lu", written);
	cr_expect_geq(written, 100000 / 16, "%lu", written);
}

Test(agent_progress_budget, leaves_nothing_out_of_ordinary_steps)
{
	for (unsigned step = 0; step < 50; step++, now += 500 * MS)
		many(300, spot_of(step % 7), 10 * US);
	cr_expect_eq(written, 50 * 300);
}

Test(agent_progress_budget, leaves_nothing_out_of_a_steady_stream_below_its_budget)
{
	many(20000, spot_of(1), CW_PROGRESS_BUDGET_PAIR_EARNED_NS);
	cr_expect_eq(written, 20000);
}

/* A step: many ops of one spot, then an op that only ends steps. */
static bool step_with_own_end(unsigned n)
{
	bool last;

	many(n, spot_of(1), 10 * US);
	last = op(spot_of(99));
	now += 3 * MS;
	return last;
}

Test(agent_progress_budget, writes_the_op_that_ends_a_step_from_the_second_time_on)
{
	make_busy();
	(void)step_with_own_end(300);
	for (unsigned i = 0; i < 500; i++)
		cr_assert(step_with_own_end(300 + i % 11), "step %u", i);
	cr_expect_leq(written, 500 * (303 / 15 + 20), "%lu", written);
}

Test(agent_progress_budget, knows_the_end_of_a_step_of_equal_ops_by_its_position)
{
	make_busy();
	for (unsigned i = 0; i < 100; i++, now += 3 * MS)
		many(300, spot_of(1), 10 * US);
	written = 0;
	for (unsigned i = 0; i < 500; i++, now += 3 * MS) {
		many(299, spot_of(1), 10 * US);
		cr_assert(op(spot_of(1)), "step %u", i);
	}
	cr_expect_leq(written, 500 * (300 / 16 + 10), "the place alone is marked: %lu", written);
}

/* The first time tells the kind, the second that this comes too often: then the position counts. */
Test(agent_progress_budget, knows_the_end_of_a_step_in_which_kinds_take_turns)
{
	unsigned missed = 0;

	make_busy();
	for (unsigned i = 0; i < 500; i++, now += 3 * MS) {
		for (unsigned n = 0; n < 299; n++, now += 10 * US)
			(void)op(spot_of(n % 2));
		missed += !op(spot_of(1)) && i > 1;
	}
	cr_expect_eq(missed, 0, "%u", missed);
	cr_expect_leq(written, 500 * 40, "%lu", written);
}

/*
 * A hold-up at a random place marks the frequent op. When the agent drops that mark later, the op
 * that ends steps keeps its own.
 */
Test(agent_progress_budget, keeps_the_mark_of_a_rare_op_when_a_frequent_one_loses_it)
{
	make_busy();
	(void)step_with_own_end(300);
	for (unsigned i = 0; i < 3000; i++) {
		many(1 + i * 7 % 90, spot_of(1), 10 * US);
		now += 3 * MS; /* held up: another spot is marked, again if it was forgotten */
		memset(&slot.common, 0, sizeof(slot.common));
		many(i * 13 % 100, spot_of(1), 10 * US);
		cr_assert(op(spot_of(99)), "%u", i);
	}
}

/* Where it stops is different each time: marks must not end up writing everything. */
Test(agent_progress_budget, forgets_marks_that_would_use_up_the_budget)
{
	make_busy();
	for (unsigned i = 0; i < 2000; i++, now += 3 * MS)
		many(100 + i * 37 % 200, spot_of(1), 10 * US);
	cr_expect_leq(written, ops / 4, "%lu of %lu", written, ops);
}

Test(agent_progress_budget, writes_the_first_op_after_a_pause)
{
	make_busy();
	for (unsigned i = 0; i < 100; i++) {
		many(200 + i % 23, spot_of(i), 10 * US);
		now += CW_PROGRESS_BUDGET_QUIET_NS;
		cr_assert(op(spot_of(1000 + i)));
	}
}

/* An op whose call failed has a "reached" and no "completed": behind it nothing is left out. */
Test(agent_progress_budget, writes_the_op_behind_a_pair_that_never_ended)
{
	make_busy();
	for (unsigned i = 0; i < 100; i++) {
		many(20, spot_of(1), 10 * US);
		cw_progress_budget_open(&slot, ++ops, now);
		cr_assert(op(spot_of(1)));
	}
}

/* A group, a send: they are written in any case, and so is nothing learnt from them. */
Test(agent_progress_budget, pays_for_what_is_always_written)
{
	for (unsigned i = 0; i < 4000; i++, now += 100 * US) {
		cw_progress_budget_open(&slot, ++ops, now);
		cw_progress_budget_close(&slot, ops, now);
		newest_written = ops;
	}
	many(64, spot_of(1), 100 * US);
	written = 0;
	many(15, spot_of(1), 100 * US);
	cr_expect_eq(written, 0);
}
