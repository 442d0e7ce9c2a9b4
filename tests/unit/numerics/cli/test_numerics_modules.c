/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `numerics` on modules, for people and for programs. */
#include "numerics/cli/numerics_modules.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/json_util.h"

static struct cw_tensor_lines_file files[2];
static struct cw_modules_rank ranks[2];
static struct cw_tensor_lines in;
static struct cw_modules_report said;
static char buf[1000];

static json_t *parsed(const char *text)
{
	json_t *doc = json_loads(text, JSON_DECODE_ANY, NULL);

	cr_assert_not_null(doc, "%s", text);
	return doc;
}

static void setup(void)
{
	for (int i = 0; i < 2; i++)
		files[i] = (struct cw_tensor_lines_file){
			.path = "a.jsonl",
			.rank = i + 4,
			.n_steps = 0,
			.bad = parsed(
				"[{\"number\":\"Inf\",\"tensor\":1,\"step\":3,\"phase\":"
				"\"forward\",\"module\":\"up\",\"class\":\"Linear\",\"op\":\"addmm\","
				"\"call\":2,\"inputs_finite\":true,\"site\":[\"m.py:9 in forward\","
				"\"t.py:1\"],\"line\":\"bad\",\"tensors\":[{\"side\":\"input\",\"what\":"
				"\"self\",\"dtype\":\"float16\",\"shape\":[],\"absmin\":1,\"absmax\":2,"
				"\"mean\":1},{\"side\":\"output\",\"what\":\"output\",\"dtype\":\"float16\","
				"\"shape\":[8,16],\"absmin\":1,\"absmax\":\"Inf\",\"mean\":\"NaN\"}]}]"),
			.before = parsed("[[{\"line\":\"frame\",\"module\":\"x\",\"class\":\"X\"},"
					 "{\"line\":\"frame\",\"module\":\"y\",\"class\":\"Y\"}]]"),
			.replicas = json_array(),
			.notes = json_array(),
			.denied = json_array(),
			.stops = json_array(),
			.is_ended = true,
		};
	in = (struct cw_tensor_lines){ .files = files, .ranks = ranks, .n = 2 };
	said = (struct cw_modules_report){ .has_first = true, .rank = 1 };
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		json_decref(files[i].bad);
		json_decref(files[i].before);
		json_decref(files[i].replicas);
		json_decref(files[i].notes);
		json_decref(files[i].denied);
		json_decref(files[i].stops);
	}
}

TestSuite(numerics_modules, .init = setup, .fini = teardown);

Test(numerics_modules, of_who_was_first)
{
	cr_expect_str_eq(numerics_modules_first(&in, &said, buf, sizeof(buf)),
			 "rank 5 was the first with Inf: output of up (Linear), addmm, call 2, "
			 "float16 [8, 16], step 3, forward, out of finite numbers, from m.py:9 in "
			 "forward");
	files[1].rank = -1;
	said.is_first_by_clock = true;
	json_object_set_new(json_array_get(files[1].bad, 0), "inputs_finite", json_false());
	json_object_set_new(json_array_get(files[1].bad, 0), "module", json_string(""));
	cr_expect_str_eq(
		numerics_modules_first(&in, &said, buf, sizeof(buf)),
		"a.jsonl was the first with Inf: output of operator addmm, call 2, float16 "
		"[8, 16], step 3, forward, into which some went, from m.py:9 in forward (of "
		"several in that step, by the clocks of their hosts)");
	json_object_set_new(json_array_get(files[1].bad, 0), "op", json_string(""));
	cr_expect_not_null(strstr(numerics_modules_first(&in, &said, buf, sizeof(buf)),
				  ": output of the program, call 2, "));
}

Test(numerics_modules, of_where_a_program_stopped)
{
	json_t *stop =
		parsed("{\"line\":\"stop\",\"stop_at\":\"up:addmm:2\",\"step\":3,\"phase\":"
		       "\"backward\",\"module\":\"up\",\"class\":\"Linear\",\"op\":\"addmm\","
		       "\"call\":2,\"site\":[\"m.py:9 in f\"],\"lines\":[{\"thread\":\"a\"},"
		       "{\"thread\":\"b\"},{}]}");
	json_t *doc;

	cr_expect_str_eq(numerics_modules_stop(&files[0], stop, buf, sizeof(buf)),
			 "rank 4 stopped before up (Linear), addmm, call 2, step 3, backward, from "
			 "m.py:9 in f: stop_at up:addmm:2");
	cr_assert_eq(json_array_append_new(files[0].stops, stop), 0);
	doc = numerics_modules_doc(&in, &said, 2);
	cr_assert_not_null(doc);
	stop = json_array_get(json_object_get(doc, "stops"), 0);
	cr_expect_eq(json_array_size(json_object_get(stop, "lines")), 2);
	cr_expect_eq(json_integer_value(json_object_get(stop, "rank")), 4);
	cr_expect_null(json_object_get(stop, "line"));
	json_decref(doc);
}

Test(numerics_modules, of_modules_that_were_not_looked_at)
{
	cr_assert_eq(json_array_append_new(files[1].denied, json_string("*.dropout")), 0);
	cr_assert_eq(json_array_append_new(files[1].denied, json_string("head")), 0);
	cr_expect_not_null(strstr(numerics_modules_coverage(&in, buf, sizeof(buf)),
				  "; modules not examined: *.dropout head"),
			   "%s", buf);
}

Test(numerics_modules, of_loss_scaling)
{
	struct cw_modules_row row = { .n_steps = 1, .step = 7, .before = 65536, .after = 32768 };

	cr_expect_str_eq(numerics_modules_row(&in, &row, buf, sizeof(buf)),
			 "rank 4 had gradients with NaN or Inf in 1 step (from step 7): loss "
			 "scaling, harmless: its scale went from 65536 to 32768");
}

Test(numerics_modules, of_replicas)
{
	json_t *line = parsed("{\"step\":50,\"different\":[{\"tensor\":\"head.weight\",\"groups\":"
			      "[[0,2,3],[1]]}]}");

	cr_expect_str_eq(numerics_modules_replica(line, 0, buf, sizeof(buf)),
			 "step 50: head.weight differs between members of the group, which should "
			 "have it alike: 0,2,3 | 1");
	said.has_first = false;
	cr_expect_not(numerics_modules_is_alarming(&in, &said));
	json_array_append_new(files[0].replicas, line);
	cr_expect(numerics_modules_is_alarming(&in, &said));
}

Test(numerics_modules, of_how_much_was_looked_at)
{
	files[0].n_steps = 1;
	files[0].n_frames = 1;
	in.n = 1;
	cr_expect_str_eq(numerics_modules_coverage(&in, buf, sizeof(buf)),
			 "1 rank, 1 step and 1 call of modules and operators looked at; weights of "
			 "replicas compared in 0 steps");
	in.n = 2;
	files[0].world_size = 8;
	files[0].is_ended = false;
	files[0].dropped = 2;
	files[0].unread = 1;
	cr_expect_str_eq(numerics_modules_coverage(&in, buf, sizeof(buf)),
			 "2 of 8 ranks, 1 step and 1 call of modules and operators looked at; "
			 "weights of replicas compared in 0 steps; 2 calls were left out; 1 tensor "
			 "was of kinds that cannot be examined; of 1 rank the last two steps may "
			 "be missing: the watch has not ended");
	files[0].n_steps = 0;
}

Test(numerics_modules, the_text_ends_with_the_bad_call)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	cr_assert_not_null(out);
	numerics_modules_show(out, &in, &said, 1);
	fclose(out);
	cr_expect_null(strstr(text, "x (X)"), "one call before was asked for");
	cr_expect_not_null(strstr(text, "the 1 call before, and that:\n"), "%s", text);
	cr_expect(strstr(text, "y (Y)") < strstr(text, "absmax Inf  mean NaN"), "%s", text);
	free(text);
}

Test(numerics_modules, the_document_has_it_all)
{
	struct cw_modules_step steps[] = { { .step = 1, .n_bad = 1, .scale = NAN } };
	const json_t *first, *rank;
	json_t *doc;

	files[1].steps = steps;
	files[1].n_steps = 1;
	said.n_bad_steps = 1;
	doc = numerics_modules_doc(&in, &said, 1);
	first = json_object_get(doc, "first");
	cr_expect_str_eq(cw_json_str(doc, "schema", ""), "collwatch.modules/1");
	cr_expect(json_is_true(json_object_get(doc, "alarm")));
	cr_expect_eq(cw_json_int(first, "rank", -1), 5);
	cr_expect_null(json_object_get(first, "line"));
	cr_expect_eq(json_array_size(json_object_get(doc, "before")), 1);
	rank = json_array_get(json_object_get(doc, "ranks"), 1);
	cr_expect_eq(cw_json_int(rank, "bad_steps", -1), 1);
	json_decref(doc);
	said.has_first = false;
	doc = numerics_modules_doc(&in, &said, 1);
	cr_expect(json_is_null(json_object_get(doc, "first")));
	json_decref(doc);
}

Test(numerics_modules, a_call_is_one_line_whatever_the_file_says)
{
	json_t *call = parsed(
		"{\"step\":1,\"phase\":\"\\u001b]0;x\\u0007\\nrank 7: fine\",\"module\":\"m\","
		"\"class\":\"C\",\"op\":\"\",\"tensors\":[]}");
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	numerics_modules_show_call(out, call);
	fclose(out);
	cr_expect_null(strchr(text, '\033'), "%s", text);
	cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "%s", text);
	free(text);
	json_decref(call);
}

/* As where the model that is watched is never called by itself. */
Test(numerics_modules, files_with_nothing_in_them_say_so)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	said.has_first = false;
	cr_expect_not(numerics_modules_has_looked(&in));
	numerics_modules_show(out, &in, &said, 8);
	fclose(out);
	cr_expect_not_null(strstr(text, "no module was examined: "), "%s", text);
	cr_expect_null(strstr(text, "no finding"), "%s", text);
	files[1].n_frames = 1;
	cr_expect(numerics_modules_has_looked(&in));
	free(text);
}
