/* SPDX-License-Identifier: Apache-2.0 */
/* Baselines are written, read and compared whole, or not, when memory runs out. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/op.h"
#include "numerics/collect/baseline_file.h"
#include "numerics/compare/baseline.h"
#include "tests/support/memory/no_memory.h"

#define ROWS 40u

static char path[64];

/* Two call sites; a third of the ops is another one from `from` on. */
static int write_run(uint32_t from)
{
	static const uint64_t counters[CW_BASELINE_COUNTERS];
	struct cw_baseline_head head = { .rank = 1, .world_size = 2 };
	struct cw_baseline_comm comm = { .id = 7, .nranks = 2, .comm_rank = 1, .name = "dp" };
	struct cw_baseline_writer *w;
	int r = cw_baseline_writer_new(path, &head, &w), end;

	if (r < 0)
		return r;
	r = cw_baseline_writer_comm(w, &comm);
	for (uint32_t i = 0; i < ROWS && r >= 0; i++) {
		struct cw_baseline_row row = { .unit = CW_BASELINE_UNIT_ROW,
					       .kind = i >= from && i % 3 == 0 ? CW_OP_BROADCAST
									       : CW_OP_ALL_REDUCE,
					       .seq = i + 1,
					       .root_or_peer = -1 };

		r = cw_baseline_writer_site(w, i % 2 ? "a.py:1 in f" : "b.py:2 in g");
		row.site = (uint16_t)r;
		if (r >= 0)
			r = cw_baseline_writer_row(w, &row);
	}
	end = cw_baseline_writer_free(w, counters);
	return r < 0 ? r : end;
}

static int read_run(struct cw_baseline_file *ret)
{
	struct cw_err err = { "" };
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	cr_assert_geq(fd, 0);
	r = cw_baseline_file_read(fd, ret, &err);
	close(fd);
	return r;
}

static void setup(void)
{
	(void)snprintf(path, sizeof(path), "/tmp/test_baseline_no_memory.%d", getpid());
}

static void teardown(void)
{
	(void)unlink(path);
}

TestSuite(baseline_no_memory, .init = setup, .fini = teardown);

static void write_and_read(void *userdata)
{
	struct cw_baseline_file file = { .rows = NULL };
	int r;

	(void)unlink(path);
	no_memory_begin();
	r = write_run(ROWS);
	no_memory_end();
	if (r < 0) {
		cr_assert(no_memory_happened() && r == -ENOMEM, "%d", r);
		return;
	}
	no_memory_begin();
	r = read_run(&file);
	no_memory_end();
	if (r < 0)
		cr_assert(no_memory_happened() && r == -ENOMEM, "%d", r);
	else
		cr_assert(file.is_finished && file.run.n_rows == ROWS && file.run.n_sites == 2);
	cw_baseline_file_fini(&file);
}

Test(baseline_no_memory, files_are_written_and_read_whole_or_not)
{
	no_memory_walk("file", write_and_read, NULL);
}

static void compare(void *userdata)
{
	struct cw_baseline_file *files = userdata;
	struct cw_baseline_options options;
	struct cw_baseline_said said = { .n_a = 0 };
	int r;

	cw_baseline_options_init(&options);
	no_memory_begin();
	r = cw_baseline_compare(&files[0].run, &files[1].run, &options, &said);
	no_memory_end();
	if (r < 0) {
		cr_assert(no_memory_happened() && r == -ENOMEM, "%d", r);
		cr_assert_eq(said.n_a, 0, "nothing is said");
		return;
	}
	cr_assert_eq(said.n_missing, 10);
	cr_assert_eq(said.n_extra, 10);
	cr_assert_eq(said.first.row_a, 12);
}

Test(baseline_no_memory, a_comparison_says_all_or_nothing)
{
	struct cw_baseline_file files[2];

	for (unsigned i = 0; i < 2; i++) {
		(void)unlink(path);
		cr_assert_eq(write_run(i ? 12 : ROWS), 0);
		cr_assert_eq(read_run(&files[i]), 0);
	}
	no_memory_walk("compare", compare, files);
	for (unsigned i = 0; i < 2; i++)
		cw_baseline_file_fini(&files[i]);
}
