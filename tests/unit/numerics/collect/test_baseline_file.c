/* SPDX-License-Identifier: Apache-2.0 */
/* Baselines in files, honest ones and others. */
#include "numerics/collect/baseline_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/op.h"
#include "numerics/collect/baseline_unit.h"

#define LONG_SITE                                                                                  \
	"a_file_with_a_long_name.py:123 in a_function_with_a_long_name.and_a_class.in_front"

static char path[64];
static int fd = -1;
static struct cw_baseline_file file;
static struct cw_err err;
static uint64_t counters[CW_BASELINE_COUNTERS];

static void setup(void)
{
	snprintf(path, sizeof(path), "/tmp/test_baseline.XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(unlink(path), 0);
}

static void teardown(void)
{
	cw_baseline_file_fini(&file);
	if (fd >= 0)
		close(fd);
	unlink(path);
}

TestSuite(baseline_file, .init = setup, .fini = teardown);

/* Two communicators, two call sites, n rows. */
static void write_rows(unsigned n, bool is_finished)
{
	struct cw_baseline_head head = { .rank = 3, .world_size = 8, .pid = 77 };
	struct cw_baseline_comm comm = { .id = 0x1234, .nranks = 8, .comm_rank = 3, .name = "dp" };
	struct cw_baseline_writer *w;

	cr_assert_eq(cw_baseline_writer_new(path, &head, &w), 0);
	for (unsigned i = 0; i < n; i++) {
		struct cw_baseline_row row = { .unit = CW_BASELINE_UNIT_ROW,
					       .kind = CW_OP_ALL_REDUCE,
					       .seq = i + 1,
					       .root_or_peer = -1 };

		if (i < 2) {
			comm.id += i;
			cr_assert_eq(cw_baseline_writer_comm(w, &comm), (int)i);
		}
		row.comm = i % 2;
		row.site = (uint16_t)cw_baseline_writer_site(w, i % 2 ? "x" : LONG_SITE);
		cr_assert_eq(row.site, i % 2 + 1);
		cr_assert_eq(cw_baseline_writer_row(w, &row), 0);
	}
	for (unsigned i = 0; i < CW_BASELINE_COUNTERS; i++)
		counters[i] = i + 100;
	cr_assert_eq(cw_baseline_writer_free(w, is_finished ? counters : NULL), 0);
	close(fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
}

static int read_it(void)
{
	cw_baseline_file_fini(&file);
	return cw_baseline_file_read(fd, &file, &err);
}

static void overwrite(size_t unit, size_t at, const void *bytes, size_t len)
{
	cr_assert_eq(pwrite(fd, bytes, len, (off_t)(unit * 64 + at)), (ssize_t)len);
}

static void refuses(const char *why)
{
	cr_assert_eq(read_it(), -EBADMSG);
	cr_assert(strstr(err.text, why), "%s", err.text);
	cr_assert_null(file.rows);
}

Test(baseline_file, gives_back_what_was_written)
{
	write_rows(5, true);
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(file.head.rank, 3);
	cr_expect_eq(file.head.world_size, 8);
	cr_expect_eq(file.head.pid, 77);
	cr_expect(file.is_finished);
	cr_expect_eq(memcmp(file.counters, counters, sizeof(counters)), 0);
	cr_assert_eq(file.run.n_rows, 5);
	for (uint32_t i = 0; i < 5; i++)
		cr_expect_eq(file.run.rows[i].seq, i + 1);
	cr_assert_eq(file.run.n_comms, 2);
	cr_expect_eq(file.run.comms[1].id, 0x1235);
	cr_expect_str_eq(file.run.comms[1].name, "dp");
	cr_assert_eq(file.run.n_sites, 2);
	cr_expect_str_eq(file.run.sites[0], LONG_SITE);
	cr_expect_str_eq(file.run.sites[1], "x");
}

Test(baseline_file, takes_a_name_once)
{
	struct cw_baseline_head head = { .rank = 3 };
	struct cw_baseline_comm comm = { .id = 0x1234, .nranks = 8 };
	struct cw_baseline_writer *w;
	static const uint8_t other = 0x35;

	cr_assert_eq(cw_baseline_writer_new(path, &head, &w), 0);
	cr_assert_eq(cw_baseline_writer_comm(w, &comm), 0);
	strcpy(comm.name, "d\033p");
	cw_baseline_writer_comm_name(w, 0, &comm);
	strcpy(comm.name, "tp");
	cw_baseline_writer_comm_name(w, 0, &comm);
	cr_assert_eq(cw_baseline_writer_free(w, counters), 0);
	close(fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	refuses("a communicator twice");
	cr_assert_eq(ftruncate(fd, 3 * 64L), 0);
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(file.run.n_comms, 1);
	cr_expect_str_eq(file.run.comms[0].name, "d?p");
	overwrite(2, 8, &other, 1); /* the id */
	refuses("a communicator twice");
}

Test(baseline_file, never_writes_over_another)
{
	struct cw_baseline_head head = { .rank = 3 };
	struct cw_baseline_writer *w;

	write_rows(5, true);
	cr_expect_eq(cw_baseline_writer_new(path, &head, &w), -EEXIST);
}

/* A full disk, or a machine that went down. */
Test(baseline_file, takes_what_there_is_of_one_that_was_cut_off)
{
	write_rows(5, false);
	cr_assert_eq(read_it(), 0);
	cr_expect(!file.is_finished);
	cr_expect_eq(file.run.n_rows, 5);
	cr_assert_eq(ftruncate(fd, lseek(fd, 0, SEEK_END) - 30), 0);
	cr_assert_eq(read_it(), 0);
	cr_expect_eq(file.run.n_rows, 4);
}

Test(baseline_file, refuses_what_is_none)
{
	uint32_t two = 2;

	cr_assert_eq(write(fd, "collwatch", 9), 9);
	refuses("is not a baseline");
	write_rows(1, true);
	overwrite(0, 8, &two, sizeof(two));
	refuses("version 2");
	overwrite(0, 0, &two, sizeof(two));
	refuses("is not a baseline");
}

/* Units: head, comm, two of text, row, comm, text, row, end. */
Test(baseline_file, refuses_what_does_not_follow)
{
	static const uint8_t seven = 7, none[8], high[4] = { 0xff, 0xff, 0xff, 0xff };

	write_rows(2, true);
	cr_assert_eq(read_it(), 0, "%s", err.text);
	overwrite(4, 0, &seven, 1);
	refuses("a sort that is not known");
	cr_assert_eq(unlink(path), 0);
	write_rows(2, true);
	overwrite(4, 12, high, 2); /* its communicator */
	refuses("does not name");
	overwrite(4, 12, none, 2);
	overwrite(4, 14, high, 2); /* its call site */
	refuses("does not name");
	overwrite(4, 14, none, 2);
	overwrite(4, 4, none, 4); /* its number */
	refuses("cannot be");
	overwrite(4, 4, high, 4);
	cr_assert_eq(read_it(), 0, "%s", err.text);
	overwrite(1, 4, &seven, 1);
	refuses("communicators out of order");
	overwrite(1, 4, none, 1);
	overwrite(2, 2, &seven, 1);
	refuses("call sites out of order");
	overwrite(2, 2, none, 1);
	refuses("without a number");
}

Test(baseline_file, refuses_rows_behind_its_end)
{
	struct cw_baseline_row row = { .unit = CW_BASELINE_UNIT_ROW, .seq = 1 };

	write_rows(2, true);
	overwrite(9, 0, &row, sizeof(row));
	refuses("goes on behind its end");
}

Test(baseline_file, makes_texts_printable)
{
	write_rows(2, true);
	overwrite(2, 4, "\x1b[2J", 4);
	overwrite(1, 24, "a\nb", 3);
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(strncmp(file.run.sites[0], "?[2J", 4), 0, "%s", file.run.sites[0]);
	cr_expect_str_eq(file.run.comms[0].name, "a?b");
}

Test(baseline_file, writes_through_no_link)
{
	struct cw_baseline_head head = { .rank = 0 };
	struct cw_baseline_writer *w;

	cr_assert_eq(symlink("/nonexistent", path), 0);
	cr_expect_eq(cw_baseline_writer_new(path, &head, &w), -EEXIST);
}
