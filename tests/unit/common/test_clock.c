/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "common/awake.h"
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

Test(clock, is_always_awake_where_nobody_says_otherwise)
{
	int64_t t = 42;
	struct cw_clock c = { .monotonic_ns = fake_now, .wall_ns = fake_now, .user = &t };

	cr_expect_eq(cw_clock_awake_ns(&c), 42);
}

/* A loop that ticks every 250 ms, and is away now and then. */
struct loop {
	int64_t now_ns;
	struct cw_clock machine;
	struct cw_awake awake;
};

static void loop_init(struct loop *l)
{
	l->now_ns = 1000 * CW_NS_PER_S;
	l->machine = (struct cw_clock){ .monotonic_ns = fake_now,
					.wall_ns = fake_now,
					.user = &l->now_ns };
	cw_awake_init(&l->awake, &l->machine);
}

static void loop_run(struct loop *l, int64_t ns)
{
	for (int64_t end_ns = l->now_ns + ns; l->now_ns < end_ns;) {
		l->now_ns += CW_NS_PER_S / 4;
		(void)cw_clock_now_ns(&l->awake.clock);
	}
}

static int64_t loop_awake_ns(struct loop *l)
{
	return cw_clock_awake_ns(&l->awake.clock);
}

Test(clock, awake_runs_as_the_monotonic_one_while_somebody_looks)
{
	struct loop l;
	int64_t since_ns;

	loop_init(&l);
	since_ns = loop_awake_ns(&l);
	loop_run(&l, 3600 * CW_NS_PER_S);
	cr_expect_eq(loop_awake_ns(&l) - since_ns, 3600 * CW_NS_PER_S);
	cr_expect_eq(cw_clock_now_ns(&l.awake.clock), l.now_ns);
	cr_expect_eq(cw_clock_wall_ns(&l.awake.clock), l.now_ns);
}

Test(clock, awake_counts_one_step_of_the_time_held_up)
{
	struct loop l;
	int64_t since_ns;

	loop_init(&l);
	loop_run(&l, CW_NS_PER_S);
	since_ns = loop_awake_ns(&l);
	l.now_ns += 300 * CW_NS_PER_S;
	/* Whichever is read first. */
	cr_expect_eq(cw_clock_now_ns(&l.awake.clock), l.now_ns);
	cr_expect_eq(loop_awake_ns(&l) - since_ns, CW_AWAKE_STEP_NS);
	loop_run(&l, 5 * CW_NS_PER_S);
	cr_expect_eq(loop_awake_ns(&l) - since_ns, CW_AWAKE_STEP_NS + 5 * CW_NS_PER_S);
	l.now_ns += 15 * CW_NS_PER_S;
	cr_expect_eq(loop_awake_ns(&l) - since_ns, 2 * CW_AWAKE_STEP_NS + 5 * CW_NS_PER_S);
}
