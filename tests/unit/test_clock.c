/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/clock.h"

static int64_t fake_now(void *user)
{
	return *(int64_t *)user;
}

Test(clock, asks_the_injected_clock)
{
	int64_t t = 42;
	struct cw_clock c = { .monotonic_ns = fake_now, .wall_ns = fake_now, .user = &t };

	cr_expect_eq(cw_clock_now_ns(&c), 42);
	t = 43;
	cr_expect_eq(cw_clock_wall_ns(&c), 43);
}

Test(clock, system_monotonic_never_steps_back)
{
	int64_t a = cw_clock_now_ns(&cw_clock_system), b = cw_clock_now_ns(&cw_clock_system);

	cr_expect_gt(a, 0);
	cr_expect_leq(a, b);
	cr_expect_gt(cw_clock_wall_ns(&cw_clock_system), INT64_C(1600000000) * CW_NS_PER_S);
}

Test(clock, wall_time_formats_and_reads_back)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ INT64_C(1795247613123000000), "2026-11-21T07:53:33.123Z" },
		{ INT64_C(1709164800000000000), "2024-02-29T00:00:00.000Z" },
	};
	char buf[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_expect_str_eq(cw_wall_format(cases[i].ns, buf), cases[i].text);
		cr_expect_eq(cw_wall_parse(cases[i].text), cases[i].ns);
	}
	cr_expect_str_eq(cw_wall_format(-1, buf), "1970-01-01T00:00:00.000Z");
	cr_expect_str_eq(cw_wall_format(INT64_MAX, buf), "2262-04-11T23:47:16.854Z");
}

Test(clock, refuses_other_forms_and_impossible_dates)
{
	static const char *const bad[] = {
		"",
		"2026-11-21",
		"2026-11-21T07:53:33Z",
		"2026-11-21T07:53:33.123",
		"2026-11-21T07:53:33.123Zx",
		"2026-11-21 07:53:33.123Z",
		"2026-02-30T00:00:00.000Z",
		"2025-02-29T00:00:00.000Z",
		"2026-13-01T00:00:00.000Z",
		"2026-00-01T00:00:00.000Z",
		"2026-01-01T24:00:00.000Z",
		"2026-01-01T00:60:00.000Z",
		"1969-12-31T23:59:59.000Z",
		"9999-01-01T00:00:00.000Z",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(cw_wall_parse(bad[i]), -1, "'%s'", bad[i]);
}
