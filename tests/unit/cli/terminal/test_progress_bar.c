/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the progress line during a slow operation. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/terminal/progress_bar.h"
#include "common/clock.h"

static const struct cw_progress_bar some = { .what = "files", .total = 200 };

static const char *line(const struct cw_progress_bar *p, uint64_t done, const char *note,
			int64_t seconds, unsigned columns)
{
	static char text[160];

	cw_progress_bar_line(p, done, note, seconds * CW_NS_PER_S, columns, text, sizeof(text));
	cr_assert_leq(strlen(text), columns, "%s", text);
	return text;
}

Test(progress_bar, is_full_at_the_end_and_empty_before)
{
	cr_expect_str_eq(line(&some, 0, NULL, 1, 100),
			 "collwatch: [------------------------------]   0 % 0/200 files");
	cr_expect_str_eq(line(&some, 100, NULL, 1, 100),
			 "collwatch: [###############---------------]  50 % 100/200 files");
	cr_expect_str_eq(
		line(&some, 200, "2 missed", 50, 100),
		"collwatch: [##############################] 100 % 200/200 files, 2 missed");
	cr_expect_str_eq(line(&some, 201, NULL, 50, 100),
			 "collwatch: [##############################] 100 % 200/200 files");
}

Test(progress_bar, says_what_is_left_once_it_can_be_known)
{
	cr_expect(strstr(line(&some, 50, NULL, 10, 100), " 50/200 files, 30 s left"));
	cr_expect(strstr(line(&some, 1, NULL, 10, 100), " 1/200 files, 33 min left"));
	cr_expect(strstr(line(&some, 1, NULL, 100, 100), " 1/200 files, 6 h left"));
	cr_expect_not(strstr(line(&some, 50, NULL, 1, 100), "left"));
}

Test(progress_bar, is_as_wide_as_there_is_room_for)
{
	cr_expect_str_eq(line(&some, 100, NULL, 1, 50),
			 "collwatch: [########---------]  50 % 100/200 files");
	cr_expect_str_eq(line(&some, 100, NULL, 1, 40), "collwatch:  50 % 100/200 files");
	cr_expect_str_eq(line(&some, 100, NULL, 1, 20), "collwatch:  50 % 100");
	cr_expect_str_eq(line(&some, 100, NULL, 1, 0), "");
}

Test(progress_bar, counts_where_nobody_knows_how_many_there_will_be)
{
	const struct cw_progress_bar p = { .what = "scenarios" };

	cr_expect_str_eq(line(&p, 7, "1 missed", 3, 100), "collwatch: 7 scenarios, 1 missed, 3 s");
	cr_expect_str_eq(line(&p, 7, NULL, 3, 100), "collwatch: 7 scenarios, 3 s");
}
