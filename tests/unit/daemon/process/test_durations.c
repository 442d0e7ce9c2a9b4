/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/process/durations.h"

static struct cw_durations d;

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

Test(durations, of_none_is_nothing)
{
	cr_assert_eq(cw_durations_quantile_ns(&d, 50), 0);
	cr_assert_eq(d.max_ns, 0);
}

Test(durations, one_is_all_quantiles)
{
	cw_durations_add(&d, 1000);
	for (unsigned percent = 0; percent <= 100; percent += 10) {
		uint64_t ns = cw_durations_quantile_ns(&d, percent);

		cr_assert(ns >= 875 && ns <= 1000, "%u: %lu", percent, ns);
	}
}

/* From nanoseconds to a minute, each against the sorted list. */
Test(durations, quantiles_are_within_an_eighth)
{
	static uint64_t all[4096];
	uint64_t seed = 7;

	for (unsigned i = 0; i < 4096; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		all[i] = (UINT64_C(64) << (seed >> 59) % 30) + (seed >> 20) % 5000;
		cw_durations_add(&d, all[i]);
	}
	qsort(all, 4096, sizeof(*all), compare);
	for (unsigned percent = 1; percent <= 100; percent++) {
		uint64_t right = all[(4096 * percent + 99) / 100 - 1];
		uint64_t ns = cw_durations_quantile_ns(&d, percent);

		cr_assert(ns >= right - right / 8 && ns <= right + right / 8, "%u: %lu not %lu",
			  percent, ns, right);
	}
	cr_assert_eq(d.max_ns, all[4095]);
}

Test(durations, none_is_longer_than_the_longest)
{
	cw_durations_add(&d, 65);
	cw_durations_add(&d, UINT64_MAX);
	cr_assert_eq(cw_durations_quantile_ns(&d, 99), UINT64_MAX);
	cr_assert_leq(cw_durations_quantile_ns(&d, 50), 73);
}

Test(durations, counts_stop_before_they_wrap)
{
	struct cw_durations more = { 0 };

	cw_durations_add(&more, 100);
	cw_durations_add(&d, 1 << 20);
	for (unsigned c = 0; c < CW_DURATIONS_CLASSES; c++)
		more.counts[c] = more.counts[c] ? UINT32_MAX : 0;
	cw_durations_join(&d, &more);
	cw_durations_join(&d, &more);
	cr_assert_leq(cw_durations_quantile_ns(&d, 99), 112);
	cr_assert_eq(d.n, 3);
	cr_assert_eq(d.max_ns, 1 << 20);
}
