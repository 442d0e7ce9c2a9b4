/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_lag.h"

#include <criterion/criterion.h>

#include "common/clock.h"

#define MS CW_NS_PER_MS

Test(loop_lag, ticks_in_time_are_no_lag)
{
	struct cw_loop_lag lag;

	cw_loop_lag_init(&lag, 250 * MS);
	for (int i = 1; i < 10; i++)
		cw_loop_lag_tick(&lag, 250 * MS * i, 0);
	cr_assert_eq(lag.max_ns, 0);
}

Test(loop_lag, longest_hold_up_is_kept)
{
	struct cw_loop_lag lag;

	cw_loop_lag_init(&lag, 250 * MS);
	cw_loop_lag_tick(&lag, 1000 * MS, 0);
	cw_loop_lag_tick(&lag, 1250 * MS, 0);
	cw_loop_lag_tick(&lag, 1620 * MS, 0);
	cr_assert_eq(lag.max_ns, 120 * MS);
	cw_loop_lag_tick(&lag, 1900 * MS, 0);
	cr_assert_eq(lag.max_ns, 120 * MS);
}

Test(loop_lag, waiting_for_a_processor_is_not_held_against_it)
{
	struct cw_loop_lag lag;

	cw_loop_lag_init(&lag, 250 * MS);
	cw_loop_lag_tick(&lag, 1000 * MS, 40 * MS);
	cw_loop_lag_tick(&lag, 1400 * MS, 180 * MS);
	cr_assert_eq(lag.max_ns, 10 * MS);
}

Test(loop_lag, iteration_that_computes_for_long_is_kept)
{
	struct cw_loop_lag lag;

	cw_loop_lag_init(&lag, 250 * MS);
	cw_loop_lag_end_iteration(&lag, 5000 * MS); /* of before the loop: not an iteration */
	cw_loop_lag_end_iteration(&lag, 5003 * MS);
	cw_loop_lag_end_iteration(&lag, 5090 * MS);
	cw_loop_lag_end_iteration(&lag, 5091 * MS);
	cr_assert_eq(lag.max_ns, 87 * MS);
}

Test(loop_lag, kernel_tells_the_delay_of_this_thread)
{
	struct cw_loop_lag lag;
	int64_t before;

	cw_loop_lag_init(&lag, 250 * MS);
	before = cw_loop_lag_run_delay_ns(&lag);
	cr_assert_geq(before, 0);
	cr_assert_geq(cw_loop_lag_run_delay_ns(&lag), before);
	cw_loop_lag_fini(&lag);
}
