/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/rankset.h"

static void expect_format(const int32_t *ranks, size_t n, const char *expected)
{
	_cleanup_(freep) char *text = cw_rankset_format_alloc(ranks, n);
	char buf[128];

	cr_expect_str_eq(text, expected);
	cr_expect_str_eq(cw_rankset_format(ranks, n, buf, sizeof(buf)), expected);
}

Test(rankset, formats_ranges_from_any_order)
{
	int32_t v[] = { 17, 3, 2, 1, 0, 2, -1, 9, 10 };

	expect_format(v, 9, "0-3,9-10,17");
	expect_format(v, 1, "17");
	expect_format(v, 0, "");
	expect_format(&v[6], 1, "");
}

Test(rankset, says_that_it_was_cut)
{
	int32_t v[] = { 100, 200, 300, 400 };
	char buf[32];

	cr_expect_str_eq(cw_rankset_format(v, 4, buf, 12), "100,200,…");
	cr_expect_str_eq(cw_rankset_format(v, 4, buf, 16), "100,200,300,400");
	cr_expect_str_eq(cw_rankset_format(v, 4, buf, 15), "100,200,…");
	cr_expect_str_eq(cw_rankset_format(v, 4, buf, 4), "…");
	cr_expect_str_eq(cw_rankset_format(v, 4, buf, 3), "");
}

Test(rankset, every_buffer_size_stays_inside_and_terminated)
{
	int32_t v[40];
	char buf[256];

	for (int i = 0; i < 40; i++)
		v[i] = i * 7;
	for (size_t len = 1; len < sizeof(buf); len++) {
		memset(buf, 'x', sizeof(buf));
		cw_rankset_format(v, 40, buf, len);
		cr_assert_lt(strnlen(buf, len), len);
		cr_assert_eq(buf[len], 'x');
	}
}

Test(rankset, parses_what_it_formats)
{
	unsigned seed = 1;

	for (int round = 0; round < 200; round++) {
		_cleanup_(freep) int32_t *parsed = NULL;
		_cleanup_(freep) char *text = NULL, *again = NULL;
		int32_t v[64];
		size_t n = (size_t)rand_r(&seed) % 64, n_parsed;

		for (size_t i = 0; i < n; i++)
			v[i] = rand_r(&seed) % 100;
		text = cw_rankset_format_alloc(v, n);
		cr_assert_eq(cw_rankset_parse(text, 100, &parsed, &n_parsed), 0);
		again = cw_rankset_format_alloc(parsed, n_parsed);
		cr_assert_str_eq(text, again);
		for (size_t i = 1; i < n_parsed; i++)
			cr_assert_lt(parsed[i - 1], parsed[i]);
	}
}

Test(rankset, refuses_malformed_text)
{
	static const char *const bad[] = { "1,",
					   ",",
					   ",1",
					   "1-",
					   "-1",
					   "3-1",
					   "a",
					   "1 ",
					   " 1",
					   "1--2",
					   "1,,2",
					   "2147483648",
					   "99999999999999999999" };
	int32_t *ranks = NULL;
	size_t n;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(cw_rankset_parse(bad[i], 100, &ranks, &n), -EINVAL, "'%s'", bad[i]);
}

Test(rankset, refuses_more_than_the_limit_before_allocating_it)
{
	int32_t *ranks = NULL;
	size_t n;

	cr_expect_eq(cw_rankset_parse("0-2147483647", 1000, &ranks, &n), -E2BIG);
	cr_expect_eq(cw_rankset_parse("0-3,5", 4, &ranks, &n), -E2BIG);
	cr_assert_eq(cw_rankset_parse("0-3", 4, &ranks, &n), 0);
	cr_expect_eq(n, 4u);
	free(ranks);
}

Test(rankset, an_empty_string_is_an_empty_set)
{
	int32_t *ranks = (int32_t *)-1;
	size_t n = 9;

	cr_assert_eq(cw_rankset_parse("", 4, &ranks, &n), 0);
	cr_expect_null(ranks);
	cr_expect_eq(n, 0u);
}
