/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows of a terminal a text takes. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/terminal/pager.h"

/* In pieces of any length it is the same. */
static size_t rows_of(const char *text, unsigned columns)
{
	struct cw_pager_rows whole = { .columns = columns }, bytes = { .columns = columns };

	cw_pager_rows_add(&whole, text, strlen(text));
	for (const char *p = text; *p; p++)
		cw_pager_rows_add(&bytes, p, 1);
	cr_expect_eq(whole.rows, bytes.rows, "%s", text);
	return whole.rows;
}

Test(pager, counts_lines_whether_or_not_the_last_one_ends)
{
	cr_expect_eq(rows_of("", 10), 0);
	cr_expect_eq(rows_of("a", 10), 1);
	cr_expect_eq(rows_of("a\n", 10), 1);
	cr_expect_eq(rows_of("\n\n", 10), 2);
	cr_expect_eq(rows_of("a\n\nb", 10), 3);
}

Test(pager, counts_long_lines_as_the_terminal_breaks_them)
{
	cr_expect_eq(rows_of("1234567890", 10), 1);
	cr_expect_eq(rows_of("1234567890\n", 10), 1);
	cr_expect_eq(rows_of("1234567890\nb\n", 10), 2);
	cr_expect_eq(rows_of("12345678901", 10), 2);
	cr_expect_eq(rows_of("123456789012345678901\nb", 10), 4);
}

Test(pager, counts_neither_colours_nor_bytes_within_a_letter)
{
	cr_expect_eq(rows_of("\033[1;31m12345\033[0m67890\n", 10), 1);
	cr_expect_eq(rows_of("äöüäöüäöü…\n", 10), 1);
	cr_expect_eq(rows_of("äöüäöüäöü…ä\n", 10), 2);
}
