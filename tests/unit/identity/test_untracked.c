/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/untracked.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define N (2 * CW_UNTRACKED_MAX)

static struct cw_untracked *table;

static void log_nothing(void *user, int level, const char *line)
{
}

static void setup(void)
{
	const struct cw_untracked_config config = { .one = "job",
						    .many = "jobs",
						    .why = "all places are taken",
						    .keep_ns = CW_NS_PER_S,
						    .log = log_nothing };

	cr_assert_eq(cw_untracked_new(&config, &table), 0);
}

static void teardown(void)
{
	table = cw_untracked_free(table);
}

TestSuite(untracked, .init = setup, .fini = teardown);

static void note(uint32_t uid, unsigned number)
{
	char label[32];
	const struct cw_untracked_item item = { .uid = uid, .label = label };

	(void)snprintf(label, sizeof(label), "job-%u", number);
	cw_untracked_note(table, &item, -1, number);
}

Test(untracked, each_item_is_in_the_table_or_counted_as_dropped)
{
	for (unsigned i = 0; i < N; i++)
		note(1, i);
	cr_expect_leq(cw_untracked_count(table), CW_UNTRACKED_MAX);
	cr_expect_eq(cw_untracked_count(table) + cw_untracked_dropped(table), N);
	/* Another user takes places of the first one. */
	for (unsigned i = 0; i < N; i++)
		note(2, i);
	cr_expect_gt(cw_untracked_of_job(table, 2, "job-0"), 0);
	cr_expect_leq(cw_untracked_count(table), CW_UNTRACKED_MAX);
	cr_expect_eq(cw_untracked_count(table) + cw_untracked_dropped(table), 2 * N);
}

Test(untracked, an_item_that_comes_again_or_goes_is_not_dropped)
{
	const struct cw_untracked_item item = { .uid = 1, .label = "job-0" };

	note(1, 0);
	note(1, 0);
	cr_expect_eq(cw_untracked_count(table), 1);
	cw_untracked_forget(table, &item);
	note(1, 0);
	cw_untracked_tick(table, 2 * CW_NS_PER_S);
	cr_expect_eq(cw_untracked_count(table), 0);
	cr_expect_eq(cw_untracked_dropped(table), 0);
}
