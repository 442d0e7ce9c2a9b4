/* SPDX-License-Identifier: Apache-2.0 */
/* The first of the ranks with watched modules, and the cases that loss scaling explains. */
#include "numerics/judge/modules.h"

#include <criterion/criterion.h>
#include <math.h>

#define STEPS 8u

static struct cw_modules_step steps[2][STEPS];
static struct cw_modules_event events[2][4];
static struct cw_modules_rank ranks[2];
static struct cw_modules_report said;

static void setup(void)
{
	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t s = 0; s < STEPS; s++)
			steps[r][s] = (struct cw_modules_step){ .step = s, .scale = NAN };
		ranks[r] = (struct cw_modules_rank){ .steps = steps[r],
						     .n_steps = STEPS,
						     .events = events[r] };
	}
}

TestSuite(modules, .init = setup);

static void bad(uint32_t rank, uint32_t step, bool is_backward, const char *at)
{
	if (is_backward)
		steps[rank][step].n_bad_gradients = 3;
	else
		steps[rank][step].n_bad = 3;
	events[rank][ranks[rank].n_events++] =
		(struct cw_modules_event){ .step = step, .is_backward = is_backward, .at = at };
}

static void judge(void)
{
	cw_modules_judge(ranks, 2, &said);
}

Test(modules, says_nothing_of_finite_numbers)
{
	judge();
	cr_expect_not(said.has_first);
	cr_expect_eq(said.n_bad_steps, 0);
	cw_modules_judge(ranks, 0, &said);
	cr_expect_not(said.has_first);
}

Test(modules, the_earlier_step_is_first)
{
	bad(0, 5, false, "a");
	bad(1, 4, false, "b");
	judge();
	cr_assert(said.has_first);
	cr_expect_eq(said.rank, 1);
	cr_expect_eq(said.event, 0);
	cr_expect_not(said.is_first_by_clock);
	cr_expect_eq(said.n_bad_steps, 2);
}

Test(modules, in_one_step_the_clock_decides_and_that_is_said)
{
	bad(0, 4, false, "2026-11-24T18:41:54.908Z");
	bad(1, 4, false, "2026-11-24T18:41:54.907Z");
	judge();
	cr_expect_eq(said.rank, 1);
	cr_expect(said.is_first_by_clock);
	events[1][0].at = "2026-11-24T18:41:54.909Z";
	judge();
	cr_expect_eq(said.rank, 0);
	cr_expect(said.is_first_by_clock);
}

/* When a line was written says little of when the numbers were seen. */
Test(modules, who_received_it_was_not_first_whatever_the_clock_says)
{
	bad(0, 4, false, "2026-11-24T18:41:54.907Z");
	bad(1, 4, false, "2026-11-24T18:41:54.909Z");
	events[0][0].is_received = true;
	judge();
	cr_expect_eq(said.rank, 1);
	cr_expect_not(said.is_first_by_clock);
	events[0][0].is_received = false;
	events[1][0].is_received = true;
	judge();
	cr_expect_eq(said.rank, 0);
	cr_expect_not(said.is_first_by_clock);
}

/* Steps 3 and 4 are bad, or one of them. */
static void scaled(uint32_t n, double before, double behind)
{
	for (uint32_t s = 0; s < STEPS; s++)
		steps[0][s].scale = before;
	for (uint32_t s = 3; s < 3 + n; s++) {
		steps[0][s].scale = s == 3 ? before : steps[0][s - 1].scale / 2;
		steps[0][s].n_bad_gradients = 9;
	}
	for (uint32_t s = 3 + n; s < STEPS; s++)
		steps[0][s].scale = behind;
	events[0][ranks[0].n_events++] =
		(struct cw_modules_event){ .step = 3, .is_backward = true, .at = "" };
}

Test(modules, loss_scaling_is_known_by_its_scale)
{
	scaled(1, 65536, 32768);
	judge();
	cr_expect_not(said.has_first);
	cr_expect_eq(said.n_bad_steps, 0);
	cr_expect_eq(said.n_scaling_steps, 1);
	cr_assert_eq(said.n_rows, 1);
	cr_expect_eq(said.rows[0].step, 3);
	cr_expect_eq(said.rows[0].before, 65536);
	cr_expect_eq(said.rows[0].after, 32768);
}

Test(modules, two_steps_are_loss_scaling_and_three_are_not)
{
	scaled(2, 65536, 16384);
	judge();
	cr_expect_not(said.has_first);
	cr_expect_eq(said.n_scaling_steps, 2);
	setup();
	scaled(3, 65536, 8192);
	judge();
	cr_expect(said.has_first);
	cr_expect_eq(said.n_bad_steps, 3);
}

Test(modules, a_scale_that_stays_explains_nothing)
{
	scaled(1, 65536, 65536);
	judge();
	cr_expect(said.has_first);
	setup();
	scaled(1, NAN, NAN);
	judge();
	cr_expect(said.has_first, "the scale is unknown");
	setup();
	scaled(1, 65536, 32768);
	steps[0][3].n_bad = 1;
	judge();
	cr_expect(said.has_first, "forward is not scaled");
	setup();
	scaled(1, 65536, 32768);
	ranks[0].n_steps = 4;
	judge();
	cr_expect(said.has_first, "what comes after it is not known");
}

Test(modules, what_comes_after_loss_scaling_is_first)
{
	scaled(1, 65536, 32768);
	bad(0, 6, false, "x");
	judge();
	cr_assert(said.has_first);
	cr_expect_eq(said.event, 1);
	cr_expect_eq(said.n_scaling_steps, 1);
	cr_expect_eq(said.n_bad_steps, 1);
}

Test(modules, bad_steps_without_frames_are_counted)
{
	steps[1][2].n_bad = 1;
	judge();
	cr_expect_not(said.has_first);
	cr_expect_eq(said.n_bad_steps, 1);
}
