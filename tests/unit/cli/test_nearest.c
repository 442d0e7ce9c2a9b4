/* SPDX-License-Identifier: Apache-2.0 */
/* Words that count as a slip of the fingers, and words that do not. */
#include <criterion/criterion.h>

#include "cli/nearest.h"

static const char *meant(const char *typed)
{
	static const char *const words[] = { "run",  "status",  "report", "stacks",       "doctor",
					     "mute", "analyze", "record", "init-cluster", "suite" };
	struct cw_nearest n = { .typed = typed };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		cw_nearest_offer(&n, words[i]);
	return n.word ? n.word : "";
}

Test(nearest, counts_what_was_typed_wrong)
{
	cr_expect_eq(cw_nearest_distance("status", "status"), 0);
	cr_expect_eq(cw_nearest_distance("statsu", "status"), 1, "neighbours the wrong way round");
	cr_expect_eq(cw_nearest_distance("sttus", "status"), 1);
	cr_expect_eq(cw_nearest_distance("statuus", "status"), 1);
	cr_expect_eq(cw_nearest_distance("ststus", "status"), 1);
	cr_expect_eq(cw_nearest_distance("", "mute"), 4);
	cr_expect_eq(cw_nearest_distance("mute", ""), 4);
	cr_expect_eq(cw_nearest_distance("", ""), 0);
}

Test(nearest, is_the_word_that_was_meant)
{
	cr_expect_str_eq(meant("statsu"), "status");
	cr_expect_str_eq(meant("reprot"), "report");
	cr_expect_str_eq(meant("analyse"), "analyze");
	cr_expect_str_eq(meant("initcluster"), "init-cluster");
	cr_expect_str_eq(meant("rnu"), "run");
	cr_expect_str_eq(meant("mtue"), "mute");
}

Test(nearest, is_none_where_another_word_was_meant)
{
	cr_expect_str_eq(meant(""), "");
	cr_expect_str_eq(meant("r"), "");
	cr_expect_str_eq(meant("help"), "");
	cr_expect_str_eq(meant("no-such-verb"), "");
	cr_expect_str_eq(meant("incidents"), "");
	cr_expect_str_eq(meant("a word that is very much longer than any that there is"), "");
}
