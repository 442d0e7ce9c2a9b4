/* SPDX-License-Identifier: Apache-2.0 */
/* When the time stamp counter tells an op's time. Every test runs in a process of its own. */
#include <criterion/criterion.h>

#include "agent/record/clock.h"

#define S UINT64_C(1000000000)

/* A clock far from the kernel's, so that a reading says which of the two it comes from. */
#define FAR (UINT64_C(1) << 62)

static bool meet(uint64_t ticks, uint64_t ns)
{
	return cw_clock_calibrate((struct cw_clock_point){ .ticks = ticks, .ns = ns });
}

#ifdef __x86_64__
/* Two comparisons that make a tick a nanosecond; the second is now. Return: its ticks. */
static uint64_t start(void)
{
	uint64_t now = CW_CLOCK_TICKS();

	cr_assert(meet(now - S, FAR - S));
	cr_assert(meet(now, FAR));
	return now;
}

Test(agent_clock, goes_on_from_where_both_clocks_met)
{
	uint64_t met = start(), before, ns, after;

	before = CW_CLOCK_TICKS();
	ns = cw_op_ns();
	after = CW_CLOCK_TICKS();
	cr_assert(ns >= FAR + (before - met) && ns <= FAR + (after - met));
}

Test(agent_clock, is_the_librarys_when_the_last_comparison_is_long_ago)
{
	uint64_t now = CW_CLOCK_TICKS();

	cr_assert(meet(now - 7 * S, FAR - 7 * S));
	cr_assert(meet(now - 5 * S, FAR - 5 * S));
	cr_assert(cw_op_ns() < FAR - 5 * S);
}

Test(agent_clock, is_the_librarys_for_good_once_the_counter_ran_on_through_a_suspend)
{
	uint64_t met = start();

	cr_assert_not(meet(met + 61 * S, FAR + S));
	cr_assert(cw_op_ns() < FAR - S);
}

Test(agent_clock, is_the_librarys_for_good_once_the_counter_was_reset)
{
	(void)start();
	cr_assert_not(meet(1, FAR + S));
	cr_assert(cw_op_ns() < FAR - S);
}

Test(agent_clock, believes_the_kernel_after_a_gap_nobody_read_in)
{
	uint64_t met = start();

	cr_assert(meet(met + 100 * S + S / 100, FAR + 100 * S));
	cr_assert_eq(cw_clock.rates[cw_clock.rate_generation % 2].ns, FAR + 100 * S);
}
#endif

Test(agent_clock, is_the_librarys_before_two_comparisons_apart)
{
	uint64_t before = cw_now_ns(), ns;

	cr_assert(meet(5 * S, FAR));
	cr_assert(meet(5 * S + S / 4, FAR + S / 4));
	cr_assert_eq(cw_clock.rate_generation, 0);
	ns = cw_op_ns();
	cr_assert(before <= ns && ns <= cw_now_ns());
}

Test(agent_clock, never_takes_a_rate_from_a_counter_that_went_back)
{
	cr_assert(meet(5 * S, FAR));
	cr_assert_not(meet(4 * S, FAR + S));
	cr_assert_eq(cw_clock.rate_generation, 0);
}

Test(agent_clock, follows_a_counter_that_changes_its_rate_a_little)
{
	uint64_t ns = FAR;

	cr_assert(meet(5 * S, ns));
	for (unsigned i = 1; i < 100; i++) {
		ns += S + i % 2 * 400000; /* 400 ppm */
		cr_assert(meet(5 * S + i * 3 * S, ns));
	}
	cr_assert_eq(cw_clock.rate_generation, 99);
}
