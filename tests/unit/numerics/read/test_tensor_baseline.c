/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's calls of operators as a baseline: as collwatch.torch writes them, and as no
 * writer should.
 */
#include "numerics/read/tensor_baseline.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/op.h"
#include "numerics/collect/baseline_file.h"

#define HEAD                                                                                       \
	"{\"line\":\"head\",\"schema\":\"collwatch.tensors/1\",\"rank\":2,\"world_size\":4,"       \
	"\"denied\":[\"view\",\"randn\"]}\n"
#define ADDMM                                                                                      \
	"{\"line\":\"operator\",\"operator\":0,\"phase\":\"forward\",\"module\":\"ffn.up\","       \
	"\"class\":\"Linear\",\"op\":\"addmm\",\"dtype\":\"bfloat16\",\"inputs\":12,\"outputs\":6}\n"
#define CALLS                                                                                      \
	"{\"line\":\"calls\",\"step\":3,\"calls\":[[0,0,1.5,-0.25,3,1,2,null,4],"                  \
	"[0,-1,null,null,null,0,1,1,1]]}\n"

static char dir[] = "/tmp/test_made.XXXXXX", path[64], made[64];
static struct cw_tensor_baseline_said said;
static struct cw_baseline_file file;
static struct cw_err err;

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/lines", dir);
	snprintf(made, sizeof(made), "%s/rank-2.operators.baseline", dir);
}

static void teardown(void)
{
	cw_baseline_file_fini(&file);
	(void)unlink(path);
	(void)unlink(made);
	cr_assert_eq(rmdir(dir), 0, "something else was left");
}

TestSuite(tensor_baseline, .init = setup, .fini = teardown);

static int make(const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
	return cw_tensor_baseline_make(path, dir, &said, &err);
}

static void read_made(void)
{
	int fd = open(made, O_RDONLY | O_CLOEXEC);

	cr_assert(fd >= 0);
	cr_assert_eq(cw_baseline_file_read(fd, &file, &err), 0, "%s", err.text);
	close(fd);
}

Test(tensor_baseline, keeps_each_call_with_the_numbers_of_both_sides)
{
	const struct cw_baseline_row *row;

	cr_assert_eq(make(HEAD ADDMM CALLS "{\"line\":\"end\",\"unread\":5}\n"), 0, "%s", err.text);
	cr_assert_eq(said.rank, 2);
	cr_assert_eq(said.n_calls, 2);
	read_made();
	cr_assert_eq(file.head.part, CW_BASELINE_OPERATORS);
	cr_assert_eq(file.head.world_size, 4);
	cr_assert_eq(file.counters[CW_BASELINE_N_NOT_COLLECTED], 5);
	cr_assert_str_eq(file.denied, "view randn");
	cr_assert_eq(file.run.n_rows, 2);
	row = file.run.rows;
	cr_assert(cw_baseline_row_is_operator(row));
	cr_assert_str_eq(file.run.sites[row->site - 1], "ffn.up (Linear): addmm, forward");
	cr_assert_eq(row->dtype, CW_DTYPE_BF16);
	cr_assert_eq(row->step_plus_1, 4);
	cr_assert_eq(row->root_or_peer, 12);
	cr_assert_eq(cw_baseline_row_count(row), 6);
	cr_assert_eq(cw_baseline_row_value(row, CW_BASELINE_IN, CW_BASELINE_MEAN), -0.25);
	cr_assert_eq(row->nonfinite[CW_BASELINE_OUT], 1);
	cr_assert(isnan(cw_baseline_row_value(row, CW_BASELINE_OUT, CW_BASELINE_MEAN)));
	cr_assert_eq(cw_baseline_row_value(row, CW_BASELINE_OUT, CW_BASELINE_L2), 4);
	cr_assert_not(cw_baseline_row_has(row + 1, CW_BASELINE_IN));
	cr_assert(cw_baseline_row_has(row + 1, CW_BASELINE_OUT));
}

Test(tensor_baseline, leaves_room_for_calls_that_were_lost)
{
	cr_assert_eq(
		make(HEAD ADDMM "{\"line\":\"calls\",\"step\":2,\"calls\":[],\"lost\":40}\n" CALLS),
		0);
	cr_assert_eq(said.n_lost, 40);
	read_made();
	cr_assert_eq(file.run.rows[0].seq, 41);
	cr_assert_eq(file.counters[CW_BASELINE_N_LOST_OPS], 40);
}

Test(tensor_baseline, takes_half_a_line_for_one_that_is_being_written)
{
	cr_assert_eq(make(HEAD ADDMM CALLS "{\"line\":\"calls\",\"st"), 0);
	cr_assert_eq(said.n_calls, 2);
}

Test(tensor_baseline, leaves_nothing_where_there_is_nothing_to_keep)
{
	cr_assert_eq(make(HEAD "{\"line\":\"step\",\"step\":3,\"frames\":7}\n"), -ENODATA);
	cr_assert(strstr(err.text, "calls=True"), "%s", err.text);
	cr_assert_eq(
		make("{\"line\":\"head\",\"schema\":\"collwatch.tensors/1\",\"world_size\":4}\n"),
		-ENODATA);
}

Test(tensor_baseline, does_not_write_over_what_is_there)
{
	cr_assert_eq(make(HEAD ADDMM CALLS), 0);
	cr_assert_eq(make(HEAD ADDMM CALLS), -EEXIST);
	read_made();
	cr_assert_eq(file.run.n_rows, 2);
}

Test(tensor_baseline, refuses_what_no_writer_writes)
{
	static const char *const lines[] = {
		CALLS, /* of an undeclared operator */
		"{\"line\":\"operator\",\"operator\":1}\n",
		ADDMM ADDMM,
		ADDMM "{\"line\":\"calls\",\"step\":3,\"calls\":[[0,0,1]]}\n",
		ADDMM "{\"line\":\"calls\",\"step\":3,\"calls\":[[-1,0,1,1,1,0,1,1,1]]}\n",
		ADDMM "{\"line\":\"calls\",\"step\":3,\"calls\":[7]}\n",
		"nothing\n",
	};
	char text[2048];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		snprintf(text, sizeof(text), "%s%s", HEAD, lines[i]);
		cr_assert_eq(make(text), -EBADMSG, "%zu", i);
		cr_assert(strstr(err.text, path), "%s", err.text);
	}
	cr_assert_eq(make(HEAD ADDMM "{\"line\":\"calls\",\"calls\":[],\"lost\":4294967295}\n"),
		     -E2BIG);
}
