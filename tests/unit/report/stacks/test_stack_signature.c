/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stack_signature.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define TORCH "/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"

static struct cw_stack_signature list[CW_STACK_SIGNATURES_MAX];

static size_t read_text(const char *text)
{
	json_error_t error;
	json_t *doc = json_loads(text, 0, &error);
	size_t n;

	cr_assert_not_null(doc, "%s in %s", error.text, text);
	n = cw_stack_signatures_read(doc, list);
	json_decref(doc);
	return n;
}

/* The main thread of pid 7 with these frames, innermost first. */
static struct cw_stack_signature of_python(const char *frames)
{
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "{\"pid\":7,\"python\":{\"threads\":[{\"tid\":7,\"frames\":[%s]}]}}",
		       frames);
	cr_assert_eq(read_text(text), 1);
	cr_expect(list[0].is_main);
	return list[0];
}

static struct cw_stack_signature of_native(const char *frames)
{
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "{\"pid\":7,\"native\":{\"threads\":[{\"tid\":7,\"frames\":[%s]}]}}",
		       frames);
	cr_assert_eq(read_text(text), 1);
	return list[0];
}

#define FRAME(function, file, line)                                                                \
	"{\"function\":\"" function "\",\"file\":\"" file "\",\"line\":" #line "}"
#define NATIVE(symbol, module, pc)                                                                 \
	"{\"symbol\":\"" symbol "\",\"module\":\"" module "\",\"pc\":\"" pc "\"}"

Test(stack_signature, ignores_lines_and_frames_inside_a_library)
{
	struct cw_stack_signature
		a = of_python(FRAME("_wait", TORCH, 3) "," FRAME("all_reduce", TORCH, 9) "," FRAME(
			"step", "/u/train.py", 44) "," FRAME("main", "/u/train.py", 90)),
		b = of_python(FRAME("_spin", TORCH, 5) "," FRAME("_wait", TORCH, 3) "," FRAME(
			"all_reduce", TORCH, 9) "," FRAME("step", "/tmp/2/train.py",
							  44) "," FRAME("main", "/u/train.py", 90)),
		c = of_python(FRAME("all_reduce", TORCH, 9) "," FRAME(
			"step", "/u/train.py", 45) "," FRAME("main", "/u/train.py", 90));

	cr_expect_eq(a.functions, b.functions);
	cr_expect_eq(a.lines, b.lines);
	cr_expect_eq(a.functions, c.functions);
	cr_expect_neq(a.lines, c.lines);
	cr_expect_eq(a.role, c.role);
	cr_expect_str_eq(a.place, "step (train.py:44), called by main (:90)");
}

Test(stack_signature, differs_in_functions_and_in_the_library_that_they_call)
{
	struct cw_stack_signature a = of_python(FRAME("all_reduce", TORCH,
						      9) "," FRAME("step", "/u/train.py", 44)),
				  b = of_python(FRAME("all_gather", TORCH,
						      9) "," FRAME("step", "/u/train.py", 44)),
				  c = of_python(FRAME("all_reduce", TORCH,
						      9) "," FRAME("save", "/u/train.py", 44)),
				  d = of_python(FRAME("step", "/u/train.py", 44));

	cr_expect_neq(a.functions, b.functions);
	cr_expect_neq(a.functions, c.functions);
	cr_expect_neq(a.functions, d.functions);
	cr_expect_neq(b.functions, d.functions);
}

Test(stack_signature, has_no_addresses_of_native_frames)
{
	struct cw_stack_signature a = of_native(NATIVE("poll", "libnccl.so.2", "0x1") "," NATIVE(
					  "ncclAllReduce", "libnccl.so.2",
					  "0x2") "," NATIVE("train", "app", "0x3")),
				  b = of_native(NATIVE("accept", "libc.so.6", "0x4") "," NATIVE(
					  "ncclAllReduce", "libnccl.so.2",
					  "0x5") "," NATIVE("train", "app", "0x6")),
				  c = of_native(NATIVE("ncclAllReduce", "libnccl.so.2",
						       "0x5") "," NATIVE("save", "app", "0x6"));

	cr_expect_eq(a.functions, b.functions);
	cr_expect_neq(a.functions, c.functions);
}

Test(stack_signature, compares_python_with_python)
{
	struct cw_stack_signature a = of_python(FRAME("f", "/u/a.py", 1)),
				  b = of_native(NATIVE("f", "a.py", "0x1"));

	cr_expect_neq(a.role, b.role);
}

Test(stack_signature, names_the_roles_of_threads)
{
	size_t n = read_text(
		"{\"pid\":7,\"python\":{\"threads\":["
		"{\"tid\":9,\"name\":\"pool_1\",\"frames\":[" FRAME(
			"w", "/u/a.py",
			1) "]},"
			   "{\"tid\":10,\"name\":\"pool_22\",\"frames\":[" FRAME(
				   "w", "/u/a.py",
				   1) "]},"
				      "{\"tid\":11,\"name\":\"log\",\"frames\":[" FRAME(
					      "flush", "/u/a.py",
					      1) "]},"
						 "{\"tid\":12,\"name\":\"empty\",\"frames\":[]},"
						 "{\"tid\":7,\"name\":\"main\",\"frames\":[" FRAME(
							 "f", "/u/a.py",
							 1) "]}]},"
							    "\"native\":{\"threads\":[{\"tid\":9,\"frames\":[" NATIVE(
								    "x", "y",
								    "0x1") "]},"
									   "{\"tid\":13,\"name\":\"proxy\",\"frames\":[" NATIVE(
										   "x", "y",
										   "0x1") "]}]}}");

	cr_assert_eq(n, 5);
	cr_expect(list[0].is_main);
	cr_expect_str_eq(list[0].thread, "main");
	cr_expect_eq(list[1].role, list[2].role);
	cr_expect_neq(list[1].role, list[3].role);
	cr_expect_str_eq(list[3].thread, "log");
	cr_expect_str_eq(list[3].place, "flush (a.py)");
	cr_expect_str_eq(list[4].thread, "proxy");
}

Test(stack_signature, survives_documents_that_we_did_not_write)
{
	static const char *const texts[] = {
		"{}",
		"{\"python\":3,\"native\":[]}",
		"{\"pid\":\"x\",\"python\":{\"threads\":[7,{\"frames\":7}]}}",
		"{\"pid\":7,\"python\":{\"threads\":[{\"tid\":\"7\",\"frames\":{}}]}}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_expect_eq(read_text(texts[i]), 0, "%s", texts[i]);
	cr_expect_eq(read_text("{\"pid\":7,\"python\":{\"threads\":[{\"tid\":7,\"name\":5,"
			       "\"frames\":[3,{\"function\":4,\"file\":null}]}]}}"),
		     1);
}
