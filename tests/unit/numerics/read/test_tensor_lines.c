/* SPDX-License-Identifier: Apache-2.0 */
/* Files of collwatch.torch, as it writes them and as no writer should. */
#include "numerics/read/tensor_lines.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define HEAD "{\"line\":\"head\",\"schema\":\"collwatch.tensors/1\",\"rank\":2,\"world_size\":4}\n"
#define FRAME "{\"line\":\"frame\",\"module\":\"a\",\"tensors\":[{\"side\":\"input\"}]}\n"
#define BAD                                                                                        \
	"{\"line\":\"bad\",\"step\":3,\"phase\":\"backward\",\"at\":\"t\",\"tensor\":0,"           \
	"\"tensors\":[{\"side\":\"output\"}]}\n"
#define STEP "{\"line\":\"step\",\"step\":3,\"frames\":7,\"nonfinite\":0,\"nonfinite_gradients\":2,"

static char dir[] = "/tmp/test_lines.XXXXXX", paths[2][64];
static struct cw_tensor_lines in;
static struct cw_err err;

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	for (int i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.jsonl", dir, i);
}

static void teardown(void)
{
	cw_tensor_lines_fini(&in);
	for (int i = 0; i < 2; i++)
		(void)unlink(paths[i]);
	cr_assert_eq(rmdir(dir), 0);
}

TestSuite(tensor_lines, .init = setup, .fini = teardown);

static void write_bytes(int i, const char *text, size_t n)
{
	FILE *f = fopen(paths[i], "w");

	cr_assert_not_null(f);
	cr_assert_eq(fwrite(text, 1, n, f), n);
	fclose(f);
}

static int read_text(const char *text)
{
	char *args[] = { paths[0] };

	write_bytes(0, text, strlen(text));
	cw_tensor_lines_fini(&in);
	return cw_tensor_lines_read(args, 1, &in, &err);
}

Test(tensor_lines, reads_steps_and_what_was_bad)
{
	const struct cw_tensor_lines_file *f;

	cr_assert_eq(read_text(HEAD FRAME FRAME BAD STEP
			       "\"loss_scale\":1024.0}\n" STEP "\"loss_scale\":null}\n"
			       "{\"line\":\"end\",\"dropped\":5,\"unread\":6}\n"),
		     0, "%s", err.text);
	f = &in.files[0];
	cr_expect_eq(f->rank, 2);
	cr_expect_eq(f->world_size, 4);
	cr_expect_eq(f->n_frames, 14);
	cr_expect_eq(f->dropped, 5);
	cr_expect_eq(f->unread, 6);
	cr_expect(f->is_ended);
	cr_assert_eq(in.ranks[0].n_steps, 2);
	cr_expect_eq(in.ranks[0].steps[0].n_bad_gradients, 2);
	cr_expect_eq(in.ranks[0].steps[0].scale, 1024);
	cr_expect(isnan(in.ranks[0].steps[1].scale));
	cr_assert_eq(in.ranks[0].n_events, 1);
	cr_expect_eq(in.ranks[0].events[0].step, 3);
	cr_expect(in.ranks[0].events[0].is_backward);
	cr_expect_str_eq(in.ranks[0].events[0].at, "t");
	cr_expect_eq(json_array_size(json_array_get(f->before, 0)), 2);
}

Test(tensor_lines, keeps_the_comparisons_that_found_something)
{
	cr_assert_eq(read_text(HEAD "{\"line\":\"replicas\",\"different\":[]}\n"
				    "{\"line\":\"replicas\",\"different\":[{\"tensor\":\"w\"}]}\n"
				    "{\"line\":\"note\",\"text\":\"compiled\"}\n"
				    "{\"line\":\"of a later version\"}\n"),
		     0, "%s", err.text);
	cr_expect_eq(in.files[0].n_compared, 2);
	cr_expect_eq(json_array_size(in.files[0].replicas), 1);
	cr_expect_eq(json_array_size(in.files[0].notes), 1);
	cr_expect_not(in.files[0].is_ended);
}

#define TRACE(step) "{\"line\":\"trace\",\"step\":" #step ",\"tensors\":[]}\n"

Test(tensor_lines, counts_the_calls_of_steps_that_are_traced)
{
	const struct cw_tensor_lines_file *f;

	cr_assert_eq(
		read_text(
			HEAD TRACE(1) TRACE(1) STEP
			"\"traced\":0,\"lost\":0}\n" TRACE(4) TRACE(4) TRACE(
				4) "{\"line\":\"step\",\"step\":4,\"traced\":3,\"lost\":7}\n" TRACE(9)),
		0, "%s", err.text);
	f = &in.files[0];
	cr_assert_eq(f->n_traces, 4);
	cr_expect(f->traces[0].step == 1 && f->traces[0].n_calls == 2);
	cr_expect(f->traces[1].step == 3 && f->traces[1].n_calls == 0);
	cr_expect(f->traces[2].step == 4 && f->traces[2].n_calls == 3 && f->traces[2].n_lost == 7);
	cr_expect(f->traces[3].step == 9, "one that the program died in");
	cr_expect_eq(in.ranks[0].n_events, 0);
}

Test(tensor_lines, keeps_where_the_program_stopped)
{
	cr_assert_eq(read_text(HEAD "{\"line\":\"stop\",\"stop_at\":\"a\",\"lines\":[]}\n"), 0,
		     "%s", err.text);
	cr_expect_eq(json_array_size(in.files[0].stops), 1);
	cr_expect_eq(read_text(HEAD "{\"line\":\"stop\",\"stop_at\":\"a\",\"lines\":{}}\n"),
		     -EBADMSG);
	cr_expect_eq(read_text(HEAD "{\"line\":\"trace\",\"step\":1}\n"), -EBADMSG);
}

Test(tensor_lines, knows_modules_that_were_not_looked_at)
{
	static const char head[] = "{\"line\":\"head\",\"schema\":\"collwatch.tensors/1\","
				   "\"denied_modules\":[%s]}\n";
	char text[200];

	snprintf(text, sizeof(text), head, "\"*.dropout\",\"head\"");
	cr_assert_eq(read_text(text), 0, "%s", err.text);
	cr_expect_eq(json_array_size(in.files[0].denied), 2);
	snprintf(text, sizeof(text), head, "5");
	cr_expect_eq(read_text(text), -EBADMSG);
}

Test(tensor_lines, leaves_out_a_line_that_is_being_written)
{
	cr_assert_eq(read_text(HEAD STEP "\"loss_scale\":1}\n" STEP), 0, "%s", err.text);
	cr_expect_eq(in.ranks[0].n_steps, 1);
}

Test(tensor_lines, refuses_what_is_no_such_file)
{
	static const char *const others[] = {
		"",
		"\n",
		"{",
		"[]\n",
		"{}\n",
		BAD,
		HEAD "{\n",
		HEAD "1\n",
		" " HEAD, /* the first byte decides the file's kind */
		HEAD "\n",
		HEAD "{\"line\":\"frame\"}\n",
		HEAD "{\"line\":\"bad\",\"tensor\":1,\"tensors\":[{}]}\n",
		HEAD "{\"line\":\"bad\",\"tensor\":-1,\"tensors\":[{}]}\n",
		HEAD "{\"line\":\"bad\",\"tensor\":0,\"tensors\":7}\n",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(read_text(others[i]), -EBADMSG, "%zu: %s", i, others[i]);
	cr_expect_not_null(strstr(err.text, ":2: no line of"), "%s", err.text);
	cr_expect_eq(read_text("{\"line\":\"head\",\"schema\":\"collwatch.tensors/2\"}\n"),
		     -ENOTSUP);
	write_bytes(0, HEAD "a\0b\n", strlen(HEAD) + 4);
	cr_expect_eq(cw_tensor_lines_read((char *[]){ paths[0] }, 1, &in, &err), -EBADMSG);
	(void)unlink(paths[0]);
	cr_expect_eq(cw_tensor_lines_read((char *[]){ paths[0] }, 1, &in, &err), -ENOENT);
	cr_expect_not(cw_tensor_lines_is(paths[0]));
	cr_expect_eq(cw_tensor_lines_read(NULL, 0, &in, &err), -EINVAL);
}

Test(tensor_lines, refuses_a_line_without_end)
{
	size_t n = 3u << 20;
	char *text = malloc(n);

	cr_assert_not_null(text);
	memset(text, 'x', n);
	memcpy(text, HEAD, strlen(HEAD));
	write_bytes(0, text, n);
	free(text);
	cr_expect_eq(cw_tensor_lines_read((char *[]){ paths[0] }, 1, &in, &err), -EBADMSG);
}

Test(tensor_lines, keeps_so_many_frames_and_no_more)
{
	char *text = calloc(3000, sizeof(FRAME));

	cr_assert_not_null(text);
	strcpy(text, HEAD);
	for (size_t i = 0, at = strlen(text); i < 2000; i++, at += strlen(FRAME))
		strcpy(text + at, FRAME);
	strcat(text, BAD);
	cr_expect_eq(read_text(text), 0, "%s", err.text);
	cr_expect_eq(json_array_size(json_array_get(in.files[0].before, 0)), 1024);
	free(text);
}

/* "[0,0,…]" takes 20 times its length: 24 MiB of it become half a gigabyte. */
#define N_LARGE_FRAMES 96
#define LARGE_ZEROS (128u << 10)

static void write_large_frames(void)
{
	FILE *f = fopen(paths[0], "w");

	cr_assert_not_null(f);
	(void)fputs(HEAD, f);
	for (int i = 0; i < N_LARGE_FRAMES; i++) {
		(void)fprintf(f, "{\"line\":\"frame\",\"number\":%d,\"tensors\":[0", i);
		for (unsigned k = 0; k < LARGE_ZEROS; k++)
			(void)fputs(",0", f);
		(void)fputs("]}\n", f);
	}
	(void)fputs(BAD, f);
	cr_assert_eq(fclose(f), 0);
}

static size_t address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	cr_assert(f && fscanf(f, "%zu", &pages) == 1);
	(void)fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

Test(tensor_lines, what_is_kept_has_a_limit_in_memory)
{
	char *args[] = { paths[0] };
	struct rlimit limit;
	const json_t *before;

	write_large_frames();
	limit.rlim_cur = limit.rlim_max = address_space() + ((size_t)384 << 20);
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	cr_assert_eq(cw_tensor_lines_read(args, 1, &in, &err), 0, "%s", err.text);
	cr_assert_eq(in.files[0].n_events, 1);
	/* The newest of them are there, and a note tells of the others. */
	before = json_array_get(in.files[0].before, 0);
	cr_assert(json_array_size(before) > 8 && json_array_size(before) < N_LARGE_FRAMES);
	cr_assert_eq(json_integer_value(json_object_get(
			     json_array_get(before, json_array_size(before) - 1), "number")),
		     N_LARGE_FRAMES - 1);
	cr_assert_eq(json_array_size(in.files[0].notes), 1);
}

Test(tensor_lines, two_files_of_one_rank_are_of_no_job)
{
	char *args[] = { paths[0], paths[1] };

	write_bytes(0, HEAD, strlen(HEAD));
	write_bytes(1, HEAD, strlen(HEAD));
	cr_expect(cw_tensor_lines_is(paths[0]));
	cr_expect_eq(cw_tensor_lines_read(args, 2, &in, &err), -EEXIST);
	cr_expect_not_null(strstr(err.text, "both of rank 2"), "%s", err.text);
}

/* The document that is made of it has texts there, and nothing else. */
Test(tensor_lines, notes_that_are_no_text_are_refused)
{
	cr_assert_eq(read_text(HEAD "{\"line\":\"note\",\"text\":\"compiled\"}\n"), 0);
	cr_assert_eq(json_array_size(in.files[0].notes), 1);
	cr_assert_eq(read_text(HEAD "{\"line\":\"note\",\"text\":5}\n"), -EBADMSG);
	cr_assert_eq(read_text(HEAD "{\"line\":\"note\",\"text\":[\"a\"]}\n"), -EBADMSG);
	cr_assert_eq(read_text(HEAD "{\"line\":\"note\"}\n"), -EBADMSG);
}

#define BUCKETS "{\"line\":\"buckets\",\"comm\":\"dp:0\",\"op\":\"all_reduce\",\"buckets\":"

Test(tensor_lines, keeps_the_newest_buckets)
{
	static char text[64 * 256];
	const json_t *kept;

	strcpy(text, HEAD);
	for (int i = 0; i < 40; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 BUCKETS "[{\"elements\":%d,\"parameters\":[\"a.weight\"]}]}\n", i + 1);
	cr_assert_eq(read_text(text), 0, "%s", err.text);
	kept = in.files[0].buckets;
	cr_assert_eq(json_array_size(kept), 32);
	kept = json_object_get(json_array_get(kept, 31), "buckets");
	cr_expect_eq(json_integer_value(json_object_get(json_array_get(kept, 0), "elements")), 40);
}

Test(tensor_lines, leaves_out_what_is_no_bucket)
{
	static const char *const wrong[] = {
		"[7]}\n",
		"[{\"elements\":0,\"parameters\":[\"a\"]}]}\n",
		"[{\"elements\":1.5,\"parameters\":[\"a\"]}]}\n",
		"[{\"elements\":4,\"parameters\":[]}]}\n",
		"[{\"elements\":4,\"parameters\":[4]}]}\n",
		"[{\"elements\":4,\"parameters\":\"a\"}]}\n",
	};
	char text[512];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), HEAD BUCKETS "%s", wrong[i]);
		cr_expect_eq(read_text(text), 0, "%s", err.text);
		cr_expect_eq(json_array_size(in.files[0].buckets), 0, "%s", wrong[i]);
	}
	cr_expect_eq(read_text(HEAD BUCKETS "7}\n"), -EBADMSG);
}
