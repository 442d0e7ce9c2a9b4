/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stack_merge.h"

#include <criterion/criterion.h>
#include <string.h>

#include "report/json_util.h"

/* A thread with frames innermost first. A capital letter is a frame that C code called. */
static json_t *python(const char *names)
{
	json_t *frames = json_array();

	for (; *names; names++)
		json_array_append_new(frames, json_pack("{s:s%, s:b}", "function", names, (size_t)1,
							"entry", *names < 'a'));
	return json_pack("{s:i, s:o}", "run_ns", 70, "frames", frames);
}

/* E = the interpreter's loop, p = another function of the interpreter. */
static json_t *native(const char *names, int run_ns)
{
	json_t *frames = json_array();

	for (; *names; names++)
		json_array_append_new(
			frames,
			*names == 'E'
				? json_pack("{s:s, s:s}", "symbol", "_PyEval_EvalFrameDefault.cold",
					    "module", "/usr/bin/python3.12")
				: json_pack("{s:s%, s:s}", "symbol", names, (size_t)1, "module",
					    *names == 'p' ? "/usr/bin/python3.12" : "libtorch.so"));
	return json_pack("{s:i, s:o}", "run_ns", run_ns, "frames", frames);
}

/* Returns the names of the merged frames; "" = they do not fit. */
static const char *merge_at(const char *python_names, const char *native_names, int run_ns)
{
	static char names[64];
	json_t *p = python(python_names), *n = native(native_names, run_ns);
	json_t *merged = cw_stack_merge(p, n), *frame;
	size_t i;

	names[0] = '\0';
	json_array_foreach (merged, i, frame)
		strcat(names, cw_json_str(frame, "function", cw_json_str(frame, "symbol", "?")));
	json_decref(merged);
	json_decref(p);
	json_decref(n);
	return names;
}

static const char *merge(const char *python_names, const char *native_names)
{
	return merge_at(python_names, native_names, 70);
}

Test(stack_merge, puts_python_frames_where_the_interpreters_loop_is)
{
	cr_expect_str_eq(merge("A", "rEpm"), "rAm");
	/* B called a without C code between them; C code, x, called B, and the thread's start D. */
	cr_expect_str_eq(merge("aBcD", "rpEpxpEpm"), "rpaBxcDm");
}

Test(stack_merge, refuses_stacks_that_do_not_fit_together)
{
	cr_expect_str_eq(merge("aBcD", "rEm"), "", "a loop is missing");
	cr_expect_str_eq(merge("aB", "rEEm"), "", "a Python frame is missing");
	cr_expect_str_eq(merge("aBc", "rEm"), "", "outer Python frames are missing");
	cr_expect_str_eq(merge("", "rm"), "");
	cr_expect_str_eq(merge("ab", "rm"), "", "frames of the agent do not show who called them");
}

Test(stack_merge, refuses_stacks_of_two_moments)
{
	cr_expect_str_eq(merge_at("A", "rEpm", 71), "");
	cr_expect_str_eq(merge_at("A", "rEpm", 0), "");
}

Test(stack_merge, takes_documents_of_any_shape)
{
	json_t *odd = json_pack("{s:i, s:[n, i, {s:i}, {s:b}]}", "run_ns", 70, "frames", 3,
				"symbol", 4, "entry", 1);

	cr_expect_null(cw_stack_merge(NULL, NULL));
	cr_expect_null(cw_stack_merge(odd, odd));
	json_decref(odd);
}
