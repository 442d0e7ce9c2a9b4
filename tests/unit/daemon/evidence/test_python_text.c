/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/python_part.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/messages.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static json_t *parse(const char *text, bool *cut)
{
	json_t *threads = cw_python_text_parse(text, strlen(text), cut);

	cr_assert_not_null(threads);
	return threads;
}

static const json_t *frame_at(const json_t *threads, size_t thread, size_t frame)
{
	return json_array_get(json_object_get(json_array_get(threads, thread), "frames"), frame);
}

Test(python_text, becomes_threads_and_frames)
{
	static const char text[] =
		"Thread 0x00007f01 (most recent call first):\n"
		"  File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n"
		"  File \"/usr/lib/python3.11/queue.py\", line 180 in get\n"
		"\n"
		"Current thread 0x00007f02 [MainThread] (most recent call first):\n"
		"  File \"train_loop.py\", line 88 in read_sample\n"
		"  File \"train_loop.py\", line 120 in <module>\n";
	bool cut = true;
	json_t *threads = parse(text, &cut);
	const json_t *second = json_array_get(threads, 1);

	cr_assert_eq(json_array_size(threads), 2);
	cr_assert_not(cut);
	cr_assert(json_is_false(json_object_get(json_array_get(threads, 0), "current")));
	cr_assert_str_eq(text_of(frame_at(threads, 0, 1), "function"), "get");
	cr_assert(json_is_true(json_object_get(second, "current")));
	cr_assert_str_eq(text_of(second, "id"), "0x00007f02");
	cr_assert_str_eq(text_of(second, "name"), "MainThread");
	cr_assert_str_eq(text_of(frame_at(threads, 1, 0), "file"), "train_loop.py");
	cr_assert_str_eq(text_of(frame_at(threads, 1, 0), "function"), "read_sample");
	cr_assert_eq(json_integer_value(json_object_get(frame_at(threads, 1, 0), "line")), 88);
	cr_assert_str_eq(text_of(frame_at(threads, 1, 1), "function"), "<module>");
	json_decref(threads);
}

Test(python_text, survives_odd_names)
{
	static const char text[] = "Current thread 0x1 (most recent call first):\n"
				   "  File \"a\", line 1 in b\", line 2 in c in d\n"
				   "  File ???, line ??? in ???\n"
				   "  File \"\", line 0 in \n"
				   "  File \"\xff\x1b[2J\", line 99999999999 in f\xff\n";
	bool cut;
	json_t *threads = parse(text, &cut);

	cr_assert_str_eq(text_of(frame_at(threads, 0, 0), "file"), "a\", line 1 in b");
	cr_assert_str_eq(text_of(frame_at(threads, 0, 0), "function"), "c in d");
	cr_assert_str_eq(text_of(frame_at(threads, 0, 1), "file"), "???");
	cr_assert(json_is_null(json_object_get(frame_at(threads, 0, 1), "line")));
	cr_assert_str_eq(text_of(frame_at(threads, 0, 2), "file"), "");
	cr_assert_str_eq(text_of(frame_at(threads, 0, 3), "file"), "??[2J");
	cr_assert(json_is_null(json_object_get(frame_at(threads, 0, 3), "line")));
	json_decref(threads);
}

Test(python_text, skips_what_is_no_traceback)
{
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"hello",
		"Thread 0x",
		"Thread 0x (most",
		"Thread 0x11112222333344445 (most recent call first):\n",
		"  File \"a\", line 1 in f\n", /* of no thread */
		"Current thread 1 (most recent call first):\n",
		"Fatal Python error: Segmentation fault\n",
	};
	bool cut;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *threads = parse(texts[i], &cut);

		cr_assert_eq(json_array_size(threads), 0, "%s", texts[i]);
		json_decref(threads);
	}
	json_t *threads = parse("Thread 0x1\n  File \"\n  File \"a\"\n  File \"a\", line 3\n"
				"  File ???, line \n  File x\n  <no Python frame>\n",
				&cut);
	cr_assert_eq(json_array_size(threads), 1);
	cr_assert_eq(json_array_size(json_object_get(json_array_get(threads, 0), "frames")), 0);
	json_decref(threads);
}

Test(python_text, is_bounded)
{
	size_t len = 0, max = 8u << 20;
	char *text = malloc(max);
	json_t *threads;
	bool cut = false;

	for (int t = 0; t < 150; t++) {
		len += (size_t)sprintf(text + len, "Thread 0x%x (most recent call first):\n", t);
		for (int f = 0; f < 150; f++)
			len += (size_t)sprintf(text + len, "  File \"%0300d\", line %d in f%d\n", f,
					       f, f);
	}
	cr_assert_lt(len, max);
	threads = cw_python_text_parse(text, len, &cut);
	cr_assert(cut);
	cr_assert_leq(json_array_size(threads), CW_PYTHON_MAX_THREADS);
	cr_assert_gt(json_array_size(threads), 1);
	cr_assert_eq(json_array_size(json_object_get(json_array_get(threads, 0), "frames")),
		     CW_PYTHON_MAX_FRAMES);
	cr_assert_leq(json_dumpb(threads, NULL, 0, JSON_COMPACT), CW_PYTHON_MAX_BYTES + 2);
	json_decref(threads);
	free(text);
}

/* Every cut and every changed byte of a good text: nothing is read that is not there. */
Test(python_text, survives_every_mutilation)
{
	static const char text[] =
		"Thread 0x1f [a] (most recent call first):\n"
		"  File \"a\", line 12 in f\n  File ???, line ??? in ???\n  ...\n"
		"\nCurrent thread 0x2 (most recent call first):\n"
		"  <no Python frame>\n";
	static const char bytes[] = "\0\n\" ,0x]\xff";
	bool cut;

	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = malloc(n ? n : 1); /* of exactly that size, for the sanitizer */

		memcpy(copy, text, n);
		json_decref(cw_python_text_parse(copy, n, &cut));
		for (size_t b = 0; n && b < sizeof(bytes) - 1; b++) {
			copy[n - 1] = bytes[b];
			json_decref(cw_python_text_parse(copy, n, &cut));
		}
		for (size_t b = 0; b < sizeof(bytes) - 1; b++) {
			char whole[sizeof(text)];

			memcpy(whole, text, sizeof(text));
			whole[n < sizeof(text) - 1 ? n : 0] = bytes[b];
			json_decref(cw_python_text_parse(whole, sizeof(text) - 1, &cut));
		}
		free(copy);
	}
}

Test(python_text, is_read_as_the_interpreter_at_hand_writes_it)
{
	static const char command[] =
		"python3 -c '\n"
		"import faulthandler, threading, sys\n"
		"go = threading.Event(); up = threading.Event()\n"
		"def read_sample():\n"
		"    up.set(); go.wait()\n"
		"t = threading.Thread(target=read_sample); t.start(); up.wait()\n"
		"def train_step():\n"
		"    faulthandler.dump_traceback(file=sys.stdout, all_threads=True)\n"
		"train_step(); go.set()\n"
		"' 2>/dev/null";
	char text[16384];
	json_t *threads;
	bool cut = true;
	size_t n;
	FILE *f;

	if (access("/usr/bin/python3", X_OK) != 0)
		cr_skip_test("needs python3");
	f = popen(command, "re");
	n = fread(text, 1, sizeof(text), f);
	cr_assert_eq(pclose(f), 0);
	threads = cw_python_text_parse(text, n, &cut);
	cr_assert_eq(json_array_size(threads), 2, "%.*s", (int)n, text);
	cr_assert_not(cut);
	cr_assert(json_is_true(json_object_get(json_array_get(threads, 1), "current")));
	cr_assert_str_eq(text_of(frame_at(threads, 1, 0), "function"), "train_step");
	cr_assert_str_eq(text_of(frame_at(threads, 1, 0), "file"), "<string>");
	json_decref(threads);
}

Test(python_text, makes_a_part_of_every_answer)
{
	static const struct {
		uint32_t status;
		const char *text, *part;
	} cases[] = {
		{ CW_PYTHON_OK, "Thread 0x1 (most recent call first):\n", "ok" },
		{ CW_PYTHON_OK, "Thread 0x1 (most recent call first):\n  ...\n", "partial" },
		{ CW_PYTHON_OK, "", "failed" },
		{ CW_PYTHON_ABSENT, "", "absent" },
		{ CW_PYTHON_NOT_ARMED, "COLLWATCH_PYTHON_STACKS=off", "absent" },
		{ CW_PYTHON_FAILED, "", "failed" },
		{ 77, "", "failed" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *part = cw_python_text_part(cases[i].status, cases[i].text);

		cr_assert_str_eq(text_of(part, "status"), cases[i].part, "case %zu", i);
		cr_assert(json_is_array(json_object_get(part, "threads")));
		json_decref(part);
	}
}
