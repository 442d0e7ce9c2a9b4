/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stack_tree.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json_util.h"
#include "report/text/render_stack_tree.h"
#include "report/text/stacks_folded.h"

static struct cw_stack_tree *tree;

static void set_up(void)
{
	tree = cw_stack_tree_new(false);
}

static void tear_down(void)
{
	cw_stack_tree_free(tree);
}

TestSuite(stack_tree, .init = set_up, .fini = tear_down);

/* Frames innermost first, "function:line" or "symbol@module", ended by NULL. */
static json_t *frames_of(const char *first, va_list ap)
{
	json_t *frames = json_array();

	for (const char *f = first; f; f = va_arg(ap, const char *)) {
		const char *colon = strchr(f, ':'), *at = strchr(f, '@');
		json_t *frame = colon ? json_pack("{s:s%, s:s, s:i}", "function", f,
						  (size_t)(colon - f), "file",
						  strstr(f, "lib_") ? "/usr/lib/python3.11/x.py"
								    : "/job/train.py",
						  "line", atoi(colon + 1))
				      : json_pack("{s:s%, s:s}", "symbol", f, (size_t)(at - f),
						  "module", at + 1);

		cr_assert_eq(json_array_append_new(frames, frame), 0);
	}
	return frames;
}

static json_t *python(const char *first, ...)
{
	json_t *frames;
	va_list ap;

	va_start(ap, first);
	frames = frames_of(first, ap);
	va_end(ap);
	return json_pack("{s:i, s:{s:s, s:[{s:o}]}}", "pid", 7, "python", "status", "ok", "threads",
			 "frames", frames);
}

/* The main thread. */
static json_t *native(const char *first, ...)
{
	json_t *frames;
	va_list ap;

	va_start(ap, first);
	frames = frames_of(first, ap);
	va_end(ap);
	return json_pack("{s:i, s:{s:s, s:[{s:i, s:s, s:o}]}}", "pid", 7, "native", "status", "ok",
			 "threads", "tid", 7, "name", "python3", "frames", frames);
}

/* Takes evidence. */
static void add(int32_t rank, json_t *evidence)
{
	cr_assert_not_null(evidence);
	cr_assert_eq(cw_stack_tree_add(tree, rank, evidence), 0);
	json_decref(evidence);
}

static const json_t *roots_of(const json_t *doc, const char *kind)
{
	const json_t *t;
	size_t i;

	json_array_foreach (json_object_get(doc, "trees"), i, t)
		if (strcmp(cw_json_str(t, "kind", ""), kind) == 0)
			return json_object_get(t, "roots");
	return NULL;
}

static const json_t *call(const json_t *nodes, size_t i)
{
	const json_t *node = json_array_get(nodes, i);

	cr_assert_not_null(node, "no node %zu", i);
	return node;
}

static const json_t *below(const json_t *node)
{
	return json_object_get(node, "calls");
}

static void expect(const json_t *node, const char *name, const char *ranks)
{
	cr_assert_str_eq(cw_json_str(node, "name", "?"), name);
	cr_assert_str_eq(cw_json_str(node, "ranks", "?"), ranks, "%s: %s", name,
			 cw_json_str(node, "ranks", "?"));
}

static char *render(const json_t *doc, bool all)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct cw_text t = { .out = out, .width = 80 };

	cw_render_stack_tree(&t, doc, all ? CW_SHOW_ALL_FRAMES | CW_SHOW_ALL_THREADS : 0);
	fclose(out);
	return text;
}

/* 1,024 ranks: one in its data loader, 23 in a checkpoint, the others in an all_reduce. */
static json_t *three_groups(void)
{
	for (int32_t rank = 0; rank < 1024; rank++) {
		if (rank == 700)
			add(rank, python("read_sample:88", "main:10", NULL));
		else if (rank >= 64 && rank < 87)
			add(rank, python("save:55", "checkpoint:30", "main:12", NULL));
		else
			add(rank, python("all_reduce:70", "step:40", "main:11", NULL));
	}
	return cw_stack_tree_doc(tree, 0);
}

Test(stack_tree, merges_1024_ranks_in_three_groups_into_three_branches_outliers_first)
{
	json_t *doc = three_groups();
	const json_t *roots = roots_of(doc, "python");

	cr_assert_str_eq(cw_json_str(doc, "schema", ""), "collwatch.stacks/1");
	cr_assert_eq(cw_json_int(doc, "seen", 0), 1024);
	cr_assert_str_eq(cw_json_str(doc, "ranks", ""), "0-1023");
	cr_assert_eq(json_array_size(roots), 3);
	expect(call(roots, 0), "main", "700");
	expect(call(below(call(roots, 0)), 0), "read_sample", "700");
	expect(call(roots, 1), "main", "64-86");
	expect(call(below(call(roots, 1)), 0), "checkpoint", "64-86");
	expect(call(roots, 2), "main", "0-63,87-699,701-1023");
	cr_assert_eq(cw_json_int(call(roots, 2), "n", 0), 1000);
	json_decref(doc);
}

Test(stack_tree, shows_three_groups_in_a_few_lines)
{
	json_t *doc = three_groups();
	char *text = render(doc, false), *odd, *all;

	odd = strstr(text, "rank 700: main (train.py:10) > read_sample (train.py:88)");
	all = strstr(text, "ranks 0-63,87-699,701-1023: main (train.py:11) > step (train.py:40)");
	cr_assert(odd && all && odd < all, "%s", text);
	cr_assert_not_null(strstr(text, "ranks 64-86: "), "%s", text);
	cr_assert_lt(strlen(text), 600, "%s", text);
	free(text);
	json_decref(doc);
}

Test(stack_tree, shares_what_stacks_have_in_common)
{
	const json_t *step;
	json_t *doc;

	for (int32_t rank = 0; rank < 4; rank++)
		add(rank, rank == 2 ? python("read:9", "step:4", "main:1", NULL)
				    : python("wait:8", "step:4", "main:1", NULL));
	doc = cw_stack_tree_doc(tree, 0);
	expect(call(roots_of(doc, "python"), 0), "main", "0-3");
	step = call(below(call(roots_of(doc, "python"), 0)), 0);
	expect(step, "step", "0-3");
	expect(call(below(step), 0), "read", "2");
	expect(call(below(step), 1), "wait", "0-1,3");
	json_decref(doc);
}

Test(stack_tree, folds_libraries_but_never_what_a_stack_ends_in)
{
	json_t *doc, *folded;

	add(0, native("read@libc.so.6", "load@prog", "main@prog", "__libc_start_main@libc.so.6",
		      NULL));
	add(1, native("write@libc.so.6", "__write_nocancel@libc.so.6", "load@prog", "main@prog",
		      "_start@prog", NULL));
	doc = cw_stack_tree_doc(tree, 0);
	cr_assert_eq(json_array_size(roots_of(doc, "native")), 2); /* they begin differently */
	folded = cw_stack_tree_fold(roots_of(doc, "native"));
	cr_assert_eq(json_array_size(folded), 1);
	expect(call(folded, 0), "main", "0-1");
	cr_assert_eq(cw_json_int(call(folded, 0), "n", 0), 2);
	expect(call(below(call(folded, 0)), 0), "load", "0-1");
	expect(call(below(call(below(call(folded, 0)), 0)), 0), "read", "0");
	expect(call(below(call(below(call(folded, 0)), 0)), 1), "write", "1");
	cr_assert_eq(json_array_size(below(call(below(call(below(call(folded, 0)), 0)), 1))), 0);
	json_decref(folded);
	json_decref(doc);
}

Test(stack_tree, keeps_stacks_that_end_in_a_folded_frame_others_go_through)
{
	json_t *doc, *folded;

	add(0, python("lib_wait:3", "main:1", NULL));
	add(1, python("callback:9", "lib_wait:3", "main:1", NULL));
	doc = cw_stack_tree_doc(tree, 0);
	folded = cw_stack_tree_fold(roots_of(doc, "python"));
	expect(call(folded, 0), "main", "0-1");
	cr_assert_eq(json_array_size(below(call(folded, 0))), 2);
	expect(call(below(call(folded, 0)), 0), "callback", "1");
	expect(call(below(call(folded, 0)), 1), "lib_wait", "0");
	json_decref(folded);
	json_decref(doc);
}

Test(stack_tree, looks_at_the_main_thread_of_an_interpreter_that_nobody_holds)
{
	/* CPython lists the newest thread first; none is "current" for a thread of the agent. */
	json_t *e = json_pack("{s:i, s:{s:s, s:[{s:[{s:s, s:i}]}, {s:[{s:s, s:i}]}]}}", "pid", 7,
			      "python", "status", "ok", "threads", "frames", "function",
			      "pin_memory", "line", 3, "frames", "function", "train", "line", 4);
	json_t *doc;

	add(0, e);
	doc = cw_stack_tree_doc(tree, 0);
	expect(call(roots_of(doc, "python"), 0), "train", "0");
	json_decref(doc);
}

Test(stack_tree, gives_a_thread_with_a_name_a_tree_of_its_own)
{
	json_t *e = native("read@libc.so.6", "main@prog", NULL), *doc;
	json_t *threads = json_object_get(json_object_get(e, "native"), "threads");
	const json_t *t;

	cr_assert_eq(json_array_append_new(threads,
					   json_pack("{s:i, s:s, s:[{s:s, s:s}]}", "tid", 8, "name",
						     "pt_autograd_0", "frames", "symbol",
						     "ncclAllReduce", "module", "libnccl.so.2")),
		     0);
	add(5, e);
	doc = cw_stack_tree_doc(tree, 0);
	cr_assert_eq(json_array_size(json_object_get(doc, "trees")), 2);
	t = json_array_get(json_object_get(doc, "trees"), 1);
	cr_assert_str_eq(cw_json_str(t, "thread", ""), "pt_autograd_0");
	expect(call(json_object_get(t, "roots"), 0), "ncclAllReduce", "5");
	json_decref(doc);
}

Test(stack_tree, shows_where_in_the_kernel_a_thread_sleeps_that_cannot_be_looked_at)
{
	json_t *doc;
	char *text;

	add(1, json_pack("{s:i, s:{s:s, s:s, s:[]}, s:{s:s, s:[{s:i, s:s, s:s, s:[s, s]}]}}", "pid",
			 7, "native", "status", "refused", "reason", "state D", "threads", "proc",
			 "status", "ok", "threads", "tid", 7, "state", "D", "wchan",
			 "folio_wait_bit", "kernel_stack", "folio_wait_bit", "vfs_write"));
	add(0, native("read@libc.so.6", "main@prog", NULL));
	doc = cw_stack_tree_doc(tree, 0);
	text = render(doc, false);
	cr_assert_not_null(strstr(text, "rank 1: vfs_write ([kernel]) > folio_wait_bit ([kernel])"),
			   "%s", text);
	free(text);
	json_decref(doc);
}

Test(stack_tree, shows_all_python_threads_on_request)
{
	static const char text[] =
		"{\"pid\":7,\"python\":{\"status\":\"ok\",\"threads\":["
		"{\"name\":\"log\",\"frames\":[{\"function\":\"flush\"}]},"
		"{\"name\":\"idle\",\"frames\":[]},"
		"{\"name\":\"python3\",\"frames\":[{\"function\":\"train\"}]}]}}";
	const json_t *trees;
	json_t *doc;

	add(0, json_loads(text, 0, NULL));
	doc = cw_stack_tree_doc(tree, 0);
	cr_expect_eq(json_array_size(json_object_get(doc, "trees")), 1);
	json_decref(doc);
	cw_stack_tree_free(tree);
	tree = cw_stack_tree_new(true);
	add(0, json_loads(text, 0, NULL));
	doc = cw_stack_tree_doc(tree, 0);
	trees = json_object_get(doc, "trees");
	cr_assert_eq(json_array_size(trees), 2);
	cr_expect_str_eq(cw_json_str(json_array_get(trees, 0), "thread", ""), "main");
	cr_expect_str_eq(cw_json_str(json_array_get(trees, 1), "thread", ""), "log");
	json_decref(doc);
}

Test(stack_tree, says_why_a_rank_with_python_stacks_has_no_native_ones)
{
	json_t *doc, *evidence = python("step:40", NULL);
	char *text;

	json_object_set_new(evidence, "native",
			    json_pack("{s:s, s:s}", "status", "refused", "reason",
				      "the process is being traced"));
	add(3, evidence);
	doc = cw_stack_tree_doc(tree, 0);
	text = render(doc, false);
	cr_expect_not_null(strstr(text, "rank 3: no native stack: the process is being traced"),
			   "%s", text);
	free(text);
	json_decref(doc);
}

Test(stack_tree, says_that_a_process_is_a_zombie)
{
	json_t *doc;
	char *text;

	add(3, json_pack("{s:i, s:{s:s, s:s, s:s}, s:{s:s, s:s}}", "pid", 7, "proc", "status", "ok",
			 "reason", "", "state", "Z", "python", "status", "absent", "reason",
			 "the process is gone"));
	doc = cw_stack_tree_doc(tree, 0);
	text = render(doc, false);
	cr_expect_not_null(strstr(text, "rank 3: it is a zombie"), "%s", text);
	free(text);
	json_decref(doc);
}

/* Each rank is in a branch of its own, 30 frames deep, with names that fill a line. */
Test(stack_tree, shows_no_line_that_is_longer_than_80_columns)
{
	static const char part[] = "std::vector<std::pair<std::string,üöä_of_things_and_more>>::go";
	json_t *doc;
	char *text;

	for (int32_t rank = 0; rank < 64; rank++) {
		json_t *frames = json_array();

		for (int i = 0; i < 30; i++) {
			char name[200];

			(void)snprintf(name, sizeof(name), "%s%d %s", part, i < 28 ? 0 : rank % 7,
				       i % 3 ? part : "x");
			json_array_insert_new(frames, 0,
					      json_pack("{s:s, s:s}", "symbol", name, "module",
							rank % (i + 2) ? "libvery_long_name_of_a_"
									 "library_file_of_it.so.12"
								       : "app"));
		}
		add(rank * 3, json_pack("{s:i, s:{s:[{s:i, s:o}]}}", "pid", 7, "native", "threads",
					"tid", 7, "frames", frames));
	}
	for (int32_t rank = 300; rank < 800; rank += 2)
		cr_assert_eq(cw_stack_tree_not_collected(tree, rank,
							 "its node did not answer in "
							 "the time of this request"),
			     0);
	doc = cw_stack_tree_doc(tree, 0);
	json_object_set_new(doc, "ages",
			    json_pack("[{s:s, s:i, s:f}, {s:s, s:i, s:f}]", "ranks", "0-90", "n",
				      31, "age_s", 0.2, "ranks", "93-189", "n", 33, "age_s", 7.5));
	json_object_set_new(doc, "different",
			    json_pack("[{s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:s}]", "ranks",
				      "0,3,6,9,12,15,18,21,24,27,30,33,36,39", "n", 14, "thread",
				      "main", "where", part, "usual",
				      "wait (train.py:12), called by main (:81)", "peers", 64,
				      "usual_n", 50, "confidence", "likely"));
	for (int all = 0; all < 2; all++) {
		text = render(doc, all);
		for (const char *line = text; *line;) {
			size_t len = strcspn(line, "\n"), columns = 0;

			for (size_t i = 0; i < len; i++)
				columns += (line[i] & 0xc0) != 0x80;
			cr_expect_leq(columns, 80, "%.*s", (int)len, line);
			line += len + (line[len] == '\n');
		}
		cr_expect_not_null(strstr(text, "likely differ from their"), "%s", text);
		cr_expect_not_null(strstr(text, "stacks at most 0.2 s old"), "%s", text);
		cr_expect_not_null(strstr(text, "ranks 93-189: stacks 7.5 s old"), "%s", text);
		free(text);
	}
	json_decref(doc);
}

Test(stack_tree, writes_folded_stacks_for_flame_graphs)
{
	char *text = NULL;
	size_t len;
	FILE *out;
	json_t *doc;

	add(0, python("wait:7", "step:40", "main:11", NULL));
	add(1, python("wait:7", "step:40", "main:11", NULL));
	add(2, python("step:40", "main:11", NULL));
	add(3, native("read;or\nnot@libc.so.6", "load@prog", NULL));
	doc = cw_stack_tree_doc(tree, 0);
	out = open_memstream(&text, &len);
	cw_render_stacks_folded(out, doc);
	fclose(out);
	cr_expect_str_eq(text,
			 "python main;main (train.py:11);step (train.py:40) 1\n"
			 "python main;main (train.py:11);step (train.py:40);wait (train.py:7) 2\n"
			 "native main;load (prog);read,or not (libc.so.6) 1\n");
	free(text);
	json_decref(doc);
}

Test(stack_tree, says_what_was_not_collected_and_why)
{
	json_t *doc;
	char *text;

	add(0, python("main:1", NULL));
	add(1, json_pack("{s:i, s:{s:s, s:s, s:[]}, s:n}", "pid", 7, "native", "status", "refused",
			 "reason", "no right to trace", "threads", "python"));
	for (int32_t rank = 8; rank < 4096; rank++)
		cr_assert_eq(cw_stack_tree_not_collected(tree, rank, "beyond the limit of a node"),
			     0);
	doc = cw_stack_tree_doc(tree, 3);
	cr_assert_eq(cw_json_int(doc, "processes", 0), 2 + 4088 + 3);
	cr_assert_eq(cw_json_int(doc, "seen", 0), 1);
	text = render(doc, false);
	cr_assert_not_null(strstr(text, "1 of 4093 processes, 3 still awaited"), "%s", text);
	cr_assert_not_null(strstr(text, "rank 1: no right to trace"), "%s", text);
	cr_assert_not_null(strstr(text, "ranks 8-4095: beyond the limit of a node"), "%s", text);
	free(text);
	json_decref(doc);
}

Test(stack_tree, stays_within_its_limits)
{
	json_t *doc;
	char name[32];

	for (int32_t rank = 0; rank < (int32_t)CW_STACK_TREE_MAX_NODES + 100; rank++) {
		(void)snprintf(name, sizeof(name), "f%d:1", rank);
		add(rank, python(name, NULL));
	}
	for (unsigned i = 0; i < CW_STACK_TREE_MAX_TREES + 10; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		add(0, json_pack("{s:i, s:{s:s, s:[{s:i, s:s, s:[{s:s}]}]}}", "pid", 7, "native",
				 "status", "ok", "threads", "tid", 8, "name", name, "frames",
				 "symbol", "f"));
	}
	doc = cw_stack_tree_doc(tree, 0);
	cr_assert_eq(json_array_size(roots_of(doc, "python")), CW_STACK_TREE_MAX_NODES);
	cr_assert_eq(json_array_size(json_object_get(doc, "trees")), CW_STACK_TREE_MAX_TREES);
	cr_assert_gt(cw_json_int(doc, "cut", 0), 100);
	json_decref(doc);
}

/* n brothers, each with these ranks. */
static json_t *brothers(unsigned n, const char *ranks)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		(void)json_array_append_new(list,
					    json_pack("{s:s, s:i, s:s, s:i}", "name", "f", "line",
						      (int)i + 1, "ranks", ranks, "n", 1));
	return list;
}

static void expect_as_it_is(const json_t *roots)
{
	json_t *folded = cw_stack_tree_fold(roots);

	cr_expect(json_equal(folded, roots));
	json_decref(folded);
}

Test(stack_tree, folds_what_may_be_there_and_nothing_that_takes_for_ever)
{
	json_t *most = brothers(CW_STACK_TREE_MAX_NODES, "0-63"), *folded;
	json_t *many = brothers(3 * CW_STACK_TREE_MAX_NODES, "7");
	json_t *large = brothers(64, "0-1048575"); /* a quarter of a GiB */

	folded = cw_stack_tree_fold(most);
	cr_expect_eq(json_array_size(folded), CW_STACK_TREE_MAX_NODES);
	json_decref(folded);
	expect_as_it_is(many);
	expect_as_it_is(large);
	json_decref(most);
	json_decref(many);
	json_decref(large);
}

Test(stack_tree, takes_documents_of_any_shape)
{
	static const char *const odd[] = {
		"{}",
		"{\"native\":3,\"python\":[]}",
		("{\"pid\":\"x\",\"native\":{\"threads\":[1,null,{\"frames\":7},{\"frames\":[[]]}]}"
		 "}"),
		"{\"python\":{\"threads\":[{\"frames\":[{\"function\":1,\"line\":\"x\"}]}]}}",
		"{\"proc\":{\"threads\":[{\"state\":\"D\",\"kernel_stack\":[1,{}]}]}}",
	};
	static const char *const odd_docs[] = {
		"{\"schema\":\"collwatch.stacks/1\"}",
		"{\"schema\":\"collwatch.stacks/1\",\"trees\":[1,{\"roots\":[{\"ranks\":\"9-1,x\","
		"\"n\":-5,\"calls\":{}}]}],\"not_collected\":[2]}",
		"{\"schema\":\"collwatch.stacks/1\",\"trees\":[{\"thread\":\"main\",\"roots\":"
		"[{\"fold\":true,\"ends\":9,\"calls\":[{\"name\":\"\\u001b[2J\"}]}]}]}",
	};
	json_t *doc;

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		add((int32_t)i - 1, json_loads(odd[i], 0, NULL));
	doc = cw_stack_tree_doc(tree, 0);
	cr_assert_not_null(doc);
	json_decref(doc);
	for (size_t i = 0; i < sizeof(odd_docs) / sizeof(*odd_docs); i++) {
		char *text;

		doc = json_loads(odd_docs[i], 0, NULL);
		cr_assert_not_null(doc, "%zu", i);
		text = render(doc, false);
		cr_assert_null(strchr(text, '\033'), "%s", text);
		free(text);
		json_decref(doc);
	}
}
