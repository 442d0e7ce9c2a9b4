/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people type them, in a zone whose clocks are turned twice a year. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "cli/verbs/since.h"
#include "common/clock.h"

/* Half past noon in Berlin, which is two hours before UTC then. */
#define NOW "2026-07-01T10:30:00.000Z"

static void set_zone(void)
{
	cr_assert_eq(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
	tzset();
}

TestSuite(since, .init = set_zone);

static const char *since_at(const char *now, const char *text)
{
	static char wall[32];
	int64_t ns = 0;
	int r = cw_since_parse(text, cw_wall_parse(now), &ns);

	if (r == -EINVAL)
		return "no time";
	if (r == -ERANGE)
		return "not in the past";
	cr_assert_eq(r, 0);
	return cw_wall_format(ns, wall);
}

static const char *since(const char *text)
{
	return since_at(NOW, text);
}

Test(since, is_so_long_ago)
{
	cr_expect_str_eq(since("2h"), "2026-07-01T08:30:00.000Z");
	cr_expect_str_eq(since("90s"), "2026-07-01T10:28:30.000Z");
	cr_expect_str_eq(since("30d"), "2026-06-01T10:30:00.000Z");
	cr_expect_str_eq(since("100000d"), "1970-01-01T00:00:00.000Z",
			 "longer than there are days");
	cr_expect_str_eq(since("2"), "no time", "of what?");
	cr_expect_str_eq(since("-2h"), "no time");
	cr_expect_str_eq(since("2hours"), "no time");
}

Test(since, is_a_day_by_the_clock_on_the_wall)
{
	cr_expect_str_eq(since("today"), "2026-06-30T22:00:00.000Z");
	cr_expect_str_eq(since("yesterday"), "2026-06-29T22:00:00.000Z", "of another month");
	cr_expect_str_eq(since("2026-06-02"), "2026-06-01T22:00:00.000Z");
	cr_expect_str_eq(since("2026-01-02"), "2026-01-01T23:00:00.000Z", "in winter");
	cr_expect_str_eq(since("11:45"), "2026-07-01T09:45:00.000Z", "today");
	cr_expect_str_eq(since("11:45:59"), "2026-07-01T09:45:59.000Z");
	cr_expect_str_eq(since("2026-06-02 14:30"), "2026-06-02T12:30:00.000Z");
	cr_expect_str_eq(since("2026-06-02T14:30:05"), "2026-06-02T12:30:05.000Z");
}

Test(since, is_a_day_that_had_another_length)
{
	/* The clocks were put on at two in the night of the 29th of March. */
	cr_expect_str_eq(since_at("2026-03-30T10:00:00.000Z", "yesterday"),
			 "2026-03-28T23:00:00.000Z");
	cr_expect_str_eq(since_at("2026-03-29T10:00:00.000Z", "today"), "2026-03-28T23:00:00.000Z");
	cr_expect_str_eq(since_at("2026-01-01T10:00:00.000Z", "yesterday"),
			 "2025-12-30T23:00:00.000Z");
}

Test(since, is_what_a_document_says)
{
	cr_expect_str_eq(since("2026-06-30T07:53:33.123Z"), "2026-06-30T07:53:33.123Z");
	cr_expect_str_eq(since("2026-06-30T07:53:33Z"), "2026-06-30T07:53:33.000Z");
	cr_expect_str_eq(since("2026-06-30T07:53Z"), "2026-06-30T07:53:00.000Z");
}

Test(since, is_no_day_that_does_not_exist)
{
	static const char *const wrong[] = {
		"2026-02-30", "2026-13-01", "2026-06-00",   "25:00",        "12:60", "tomorrow", "",
		"2026-06",    "06/02/2026", "2026-06-02 x", "2026-06-02 14"
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_str_eq(since(wrong[i]), "no time", "\"%s\" was taken: %s", wrong[i],
				 since(wrong[i]));
}

Test(since, is_not_to_come)
{
	cr_expect_str_eq(since("2026-07-02"), "not in the past");
	cr_expect_str_eq(since("12:31"), "not in the past");
	cr_expect_str_eq(since("9999-01-01"), "not in the past");
	cr_expect_str_eq(since("1969-01-01"), "not in the past", "there was no time before");
}
