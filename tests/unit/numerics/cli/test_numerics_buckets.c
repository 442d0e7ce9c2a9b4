/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients that a call carried, in words; files that are empty or arbitrary. */
#include "numerics/cli/numerics_buckets.h"

#include <criterion/criterion.h>
#include <string.h>

#include "model/op.h"

static struct cw_numerics_sample samples[4];
static const struct cw_numerics_comm comms[] = { { .id = 1, .name = "dp (3)", .nranks = 4 } };
static const struct cw_numerics_rank ranks[] = { { .rank = 5 } };
static struct cw_numerics_rank_said said_of[1];
static struct cw_numerics_input in;
static const struct cw_numerics_report said = { .ranks = said_of };
static struct cw_tensor_lines_file file;
static const struct cw_tensor_lines lines = { .files = &file, .n = 1 };

static void setup(void)
{
	for (uint32_t i = 0; i < 4; i++)
		samples[i] = (struct cw_numerics_sample){ .seq = i + 1,
							  .step = i / 3,
							  .offered = i % 3 < 2 ? 40 : 64,
							  .kind = CW_OP_ALL_REDUCE,
							  .dtype = CW_DTYPE_FP32 };
	said_of[0] = (struct cw_numerics_rank_said){ .first = 0, .last = 4 };
	in = (struct cw_numerics_input){ .job = { samples, 4, comms, 1, ranks, 1 } };
	file = (struct cw_tensor_lines_file){ .rank = 5, .buckets = json_array() };
}

static void teardown(void)
{
	json_decref(file.buckets);
	cw_arena_fini(&in.arena);
}

TestSuite(numerics_buckets, .init = setup, .fini = teardown);

static void line_of_step(int step, const char *comm, const char *op, const char *buckets)
{
	json_t *list = json_loads(buckets, 0, NULL);

	cr_assert_not_null(list);
	cr_assert_eq(json_array_append_new(file.buckets,
					   json_pack("{s:i, s:s, s:s, s:o}", "step", step, "comm",
						     comm, "op", op, "buckets", list)),
		     0);
}

static void line(const char *comm, const char *op, const char *buckets)
{
	line_of_step(0, comm, op, buckets);
}

static void expect(uint32_t sample, const char *text)
{
	const char *told = samples[sample].carried;

	if (text)
		cr_expect(told && strcmp(told, text) == 0, "%u: %s", sample,
			  told ? told : "nothing");
	else
		cr_expect_null(told, "%u: %s", sample, told ? told : "");
}

#define BUCKETS                                                                                    \
	"[{\"elements\":40,\"parameters\":[\"b.1.up.bias\",\"b.1.up.weight\",\"b.1.n.weight\"]},"  \
	"{\"elements\":40,\"parameters\":[\"a.w\",\"b.w\",\"c.w\",\"d.w\"]},"                      \
	"{\"elements\":64,\"parameters\":[\"scale\"]}]"

Test(numerics_buckets, are_told_in_words)
{
	line("dp:3", "all_reduce", BUCKETS);
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, "gradients of b.1.up, b.1.n (3 parameters)");
	expect(1, "gradients of a, b and 2 more (4 parameters)");
	expect(2, "gradients of scale (1 parameter)");
	expect(3, "gradients of b.1.up, b.1.n (3 parameters)");
	samples[1].offered = 41; /* the step is not as expected */
	for (uint32_t i = 0; i < 4; i++)
		samples[i].carried = NULL;
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, NULL);
	expect(2, "perhaps gradients of scale (1 parameter)");
}

#define OTHERS                                                                                     \
	"[{\"elements\":40,\"parameters\":[\"x.w\"]},{\"elements\":40,\"parameters\":[\"y.w\"]},"  \
	"{\"elements\":64,\"parameters\":[\"z.w\"]}]"

/* As large, of other parameters: made anew in step 1. */
Test(numerics_buckets, of_the_newest_line_count_from_its_step_on)
{
	line_of_step(0, "dp:3", "all_reduce", BUCKETS);
	line_of_step(1, "dp:3", "all_reduce", OTHERS);
	said_of[0].last = 3;
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, "gradients of b.1.up, b.1.n (3 parameters)");
	expect(2, "gradients of scale (1 parameter)");
	line_of_step(0, "dp:3", "all_reduce", OTHERS);
	for (uint32_t i = 0; i < 4; i++)
		samples[i].carried = NULL;
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, "gradients of x (1 parameter)");
}

Test(numerics_buckets, of_an_older_line_do_not_count_where_there_is_a_newer_one)
{
	line("dp:3", "all_reduce", BUCKETS);
	line("dp:3", "all_reduce",
	     "[{\"elements\":64,\"parameters\":[\"all\"]},"
	     "{\"elements\":9,\"parameters\":[\"none\"]}]");
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, NULL);
	expect(2, "perhaps gradients of all (1 parameter)");
}

Test(numerics_buckets, of_a_line_without_its_step_are_not_certain)
{
	json_t *list = json_loads(BUCKETS, 0, NULL);

	cr_assert_eq(
		json_array_append_new(file.buckets, json_pack("{s:s, s:s, s:o}", "comm", "dp:3",
							      "op", "all_reduce", "buckets", list)),
		0);
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, NULL);
	expect(2, "perhaps gradients of scale (1 parameter)");
}

Test(numerics_buckets, of_others_are_not_told)
{
	line("tp:3", "all_reduce", BUCKETS);
	line("dp:3", "all_gather", BUCKETS);
	line("dp:3", "sum_up", BUCKETS);
	line("dp:3", "all_reduce", "[]");
	line("", "all_reduce", BUCKETS);
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, NULL);
	line("dp:3", "all_reduce", BUCKETS);
	file.rank = 4;
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	expect(0, NULL);
}

Test(numerics_buckets, have_no_control_characters_and_end_somewhere)
{
	char name[1024] = "";

	memset(name, 'x', sizeof(name) - 1);
	json_t *list =
		json_pack("[{s:i, s:[s, s]}]", "elements", 64, "parameters", "a\033[2J", name);

	cr_assert_eq(
		json_array_append_new(file.buckets, json_pack("{s:s, s:s, s:o}", "comm", "dp:3",
							      "op", "all_reduce", "buckets", list)),
		0);
	cr_assert_eq(numerics_buckets_fill(&in, &said, &lines), 0);
	cr_assert_not_null(samples[2].carried);
	cr_expect_null(strchr(samples[2].carried, '\033'));
	cr_expect_lt(strlen(samples[2].carried), 256);
}
