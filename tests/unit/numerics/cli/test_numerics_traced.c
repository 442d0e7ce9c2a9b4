/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of traced steps, and their names. */
#include "numerics/cli/numerics_traced.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

Test(numerics_traced, steps_and_ranges_are_asked_for)
{
	struct numerics_steps steps = { .n = 0 };

	cr_assert_eq(numerics_steps_parse("1,3,10-20", &steps), 0);
	cr_assert_eq(numerics_steps_parse("40", &steps), 0);
	cr_expect(numerics_steps_has(&steps, 1) && numerics_steps_has(&steps, 3));
	cr_expect(numerics_steps_has(&steps, 10) && numerics_steps_has(&steps, 20));
	cr_expect(numerics_steps_has(&steps, 40));
	cr_expect_not(numerics_steps_has(&steps, 2) || numerics_steps_has(&steps, 21));
	cr_expect_not(numerics_steps_has(&steps, -1));
	steps.n = 0;
	cr_expect_not(numerics_steps_has(&steps, 1));
	cr_assert_eq(numerics_steps_parse("all", &steps), 0);
	cr_expect(numerics_steps_has(&steps, 0) && numerics_steps_has(&steps, INT64_MAX));
}

Test(numerics_traced, what_are_no_steps_is_refused)
{
	static const char *const wrong[] = { "",
					     "a",
					     "1,",
					     ",1",
					     "3-1",
					     "1-",
					     "-1",
					     "1-2-3",
					     "1 ,2",
					     "+1",
					     "0x1",
					     "1;2",
					     "ALL",
					     "9223372036854775808",
					     "99999999999999999999" };
	struct numerics_steps steps = { .n = 0 };
	char many[2 * NUMERICS_STEPS_MAX + 2] = "";

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect_eq(numerics_steps_parse(wrong[i], &steps), -EINVAL, "\"%s\"", wrong[i]);
	for (size_t i = 0; i < NUMERICS_STEPS_MAX; i++)
		strcat(many, i ? ",1" : "1");
	cr_expect_eq(numerics_steps_parse(many, &steps), 0);
	cr_expect_eq(numerics_steps_parse("1", &steps), -E2BIG);
	cr_expect_eq(steps.n, NUMERICS_STEPS_MAX);
}

/* The printed names are valid arguments. */
Test(numerics_traced, of_many_steps_it_says_all)
{
	struct cw_tensor_lines_trace traces[150];
	struct cw_tensor_lines_file file = { .path = "a", .traces = traces, .n_traces = 150 };
	struct cw_tensor_lines in = { .files = &file, .n = 1 };
	struct numerics_steps none = { .n = 0 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	for (int i = 0; i < 150; i++)
		traces[i] = (struct cw_tensor_lines_trace){ .step = INT64_MAX - 300 + 2 * i };
	numerics_traced_show(out, &in, &none);
	fclose(out);
	cr_expect_not_null(strstr(text, " and others, 0 in all: --trace-steps all shows them\n"),
			   "%s", text);
	cr_expect_null(strstr(text, ", and"), "%s", text);
	free(text);
}

Test(numerics_traced, says_which_steps_are_there)
{
	struct cw_tensor_lines_trace traces[] = { { .step = 1, .n_calls = 5 },
						  { .step = 3, .n_calls = 5 },
						  { .step = 4, .n_calls = 5 },
						  { .step = 5, .n_calls = 5 } };
	struct cw_tensor_lines_file files[] = {
		{ .path = "a", .rank = 0 },
		{ .path = "b", .rank = 1, .traces = traces, .n_traces = 4 },
		{ .path = "c", .rank = 2, .traces = traces, .n_traces = 4 },
	};
	struct cw_tensor_lines in = { .files = files, .n = 3 };
	struct numerics_steps none = { .n = 0 };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	numerics_traced_show(out, &in, &none);
	fclose(out);
	cr_expect_str_eq(text, "rank 1 has each call of steps 1,3-5, 20 in all (and 1 more rank): "
			       "--trace-steps 1,3-5 shows them\n");
	free(text);
}
