/* SPDX-License-Identifier: Apache-2.0 */
/* From flight records that the tests write, to baselines. */
#include "numerics/collect/baseline_collect.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "model/op.h"
#include "record/summary_taken.h"
#include "tests/support/record/record_writer.h"

static struct cw_test_record *rec;
static int comm;
static char dir[64];
static struct cw_baseline_collector *collector;
static struct cw_baseline_collected said;
static struct cw_baseline_file file;
static int64_t now_ns;
static uint64_t launched;

static void setup(void)
{
	struct cw_record *reader;

	snprintf(dir, sizeof(dir), "/tmp/test_collect.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	rec = cw_test_record_new();
	rec->header->rank_label = 2;
	rec->header->has |= CW_REC_HAS_SUMMARIES;
	comm = cw_test_record_comm(rec, 0x77, 4, 2);
	strcpy(rec->comms[comm].name, "dp");
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);
	cr_assert_eq(cw_baseline_collector_new(reader, dir, &collector), 0);
	now_ns = CW_NS_PER_MS;
	launched = 0;
}

static void teardown(void)
{
	char command[128];

	cw_baseline_collector_free(collector, NULL);
	cw_baseline_file_fini(&file);
	cw_test_record_free(rec);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(baseline_collect, .init = setup, .fini = teardown);

/* As an agent numbers launches. */
static struct cw_rec_summary *sample(uint64_t op, uint64_t seq, bool is_output, double value)
{
	uint64_t number = ++launched;
	struct cw_rec_summary *s =
		&rec->summaries[CW_REC_SUMMARY_FIRSTS + number % CW_REC_SUMMARY_RING];

	*s = (struct cw_rec_summary){ .publish = number,
				      .op_index = op,
				      .seq = seq,
				      .comm = (uint32_t)comm,
				      .comm_generation = rec->comms[comm].generation,
				      .kind = CW_OP_ALL_REDUCE,
				      .dtype = CW_DTYPE_FP32,
				      .is_output = is_output,
				      .stride_log2_plus_1 = 1,
				      .elements = 10,
				      .offered = 10,
				      .abs_max = value,
				      .mean = value,
				      .l2 = value * sqrt(10),
				      .step_plus_1 = 6 };
	return s;
}

/* Called and returned; its input was launched. */
static uint64_t call(void)
{
	uint64_t op = cw_test_record_enter(rec, comm,
					   &(struct cw_rec_op){ .kind = CW_OP_ALL_REDUCE,
								.dtype = CW_DTYPE_FP32,
								.redop = CW_REDOP_SUM,
								.root_or_peer = -1,
								.progress_slot = CW_REC_NO_SLOT,
								.module = CW_REC_NO_SLOT,
								.summary_id = 1,
								.count = 10 });

	cw_test_record_return(rec, comm, op, 0);
	return op;
}

static void poll_now(void)
{
	now_ns += CW_NS_PER_MS;
	cr_assert_eq(cw_baseline_collector_poll(collector, now_ns), 0);
}

static void finish(void)
{
	char path[128];
	struct cw_err err = { "" };
	int fd;

	cr_assert_eq(cw_baseline_collector_free(collector, &said), 0);
	collector = NULL;
	snprintf(path, sizeof(path), "%s/rank-2.baseline", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(cw_baseline_file_read(fd, &file, &err), 0, "%s", err.text);
	close(fd);
	cr_assert(file.is_finished);
}

Test(baseline_collect, joins_ops_and_their_summaries)
{
	uint64_t op = call();
	struct cw_rec_summary *output;

	sample(op, 1, false, 3);
	output = sample(op, 1, true, 12);
	output->nans = 300;
	output->elements = output->offered = 1000;
	poll_now();
	finish();
	cr_assert_eq(said.n_ops, 1);
	cr_assert_eq(file.run.n_rows, 1);
	cr_expect_eq(file.head.rank, 2);
	cr_expect_str_eq(file.run.comms[0].name, "dp");
	cr_expect_eq(file.rows[0].unit & ~CW_BASELINE_UNIT_MASK,
		     CW_BASELINE_HAS_IN | CW_BASELINE_HAS_OUT);
	cr_expect_eq(file.rows[0].seq, 1);
	cr_expect_eq(file.rows[0].step_plus_1, 6);
	cr_expect_eq(cw_baseline_row_count(&file.rows[0]), 10);
	cr_expect_eq(cw_baseline_row_value(&file.rows[0], CW_BASELINE_IN, CW_BASELINE_ABSMAX), 3);
	cr_expect_eq(cw_baseline_row_value(&file.rows[0], CW_BASELINE_OUT, CW_BASELINE_MEAN), 12);
	cr_expect_eq(file.rows[0].nonfinite[CW_BASELINE_OUT], CW_BASELINE_NONFINITE_MAX);
	cr_expect_eq(file.counters[CW_BASELINE_N_TENSORS], 2);
}

/* collwatch.torch names a group's communicator in the step behind its first call. */
Test(baseline_collect, knows_a_name_that_came_late)
{
	rec->comms[comm].name[0] = '\0';
	sample(call(), 1, false, 3);
	poll_now();
	sample(call(), 2, false, 3);
	poll_now();
	strcpy(rec->comms[comm].name, "tp");
	poll_now();
	sample(call(), 3, false, 3);
	poll_now();
	poll_now();
	finish();
	cr_assert_eq(file.run.n_comms, 1);
	cr_expect_str_eq(file.run.comms[0].name, "tp");
	cr_expect_eq(file.run.n_rows, 3);
}

/* The device is behind the host, and a summary may be seen before its call has returned. */
Test(baseline_collect, waits_for_summaries_and_for_ops)
{
	uint64_t first = call(), second;

	poll_now();
	second = cw_test_record_enter(rec, comm,
				      &(struct cw_rec_op){ .kind = CW_OP_ALL_REDUCE,
							   .dtype = CW_DTYPE_FP32,
							   .root_or_peer = -1,
							   .summary_id = 1,
							   .count = 10 });
	sample(second, 2, false, 5);
	poll_now();
	sample(first, 1, false, 4);
	sample(first, 1, true, 16);
	cw_test_record_return(rec, comm, second, 0);
	sample(second, 2, true, 20);
	poll_now();
	finish();
	cr_assert_eq(file.run.n_rows, 2);
	cr_expect_eq(file.rows[0].seq, 1);
	cr_expect_eq(cw_baseline_row_value(&file.rows[0], CW_BASELINE_IN, CW_BASELINE_ABSMAX), 4);
	cr_expect_eq(cw_baseline_row_value(&file.rows[1], CW_BASELINE_IN, CW_BASELINE_ABSMAX), 5);
	cr_expect_eq(cw_baseline_row_value(&file.rows[1], CW_BASELINE_OUT, CW_BASELINE_ABSMAX), 20);
	cr_expect_eq(file.counters[CW_BASELINE_N_LOST_TENSORS], 0);
}

Test(baseline_collect, gives_up_waiting)
{
	call();
	poll_now();
	now_ns += 3000 * CW_NS_PER_MS;
	sample(call(), 2, false, 1);
	poll_now();
	finish();
	cr_assert_eq(file.run.n_rows, 2);
	cr_expect_eq(file.rows[0].unit, CW_BASELINE_UNIT_ROW);
	cr_expect_eq(file.rows[1].unit, CW_BASELINE_UNIT_ROW | CW_BASELINE_HAS_IN);
}

/* Far more than a record keeps of either. */
Test(baseline_collect, gets_everything_out_of_a_record_that_is_read_often_enough)
{
	const unsigned total = 3 * CW_REC_RING_OPS;

	for (unsigned i = 0; i < total; i++) {
		uint64_t op = call();

		sample(op, i + 1, false, i);
		sample(op, i + 1, true, 4 * i);
		if (i % 50 == 49)
			poll_now();
	}
	poll_now();
	finish();
	cr_assert_eq(file.run.n_rows, total);
	for (unsigned i = 0; i < total; i++) {
		cr_assert_eq(file.rows[i].seq, i + 1);
		cr_assert_eq(
			cw_baseline_row_value(&file.rows[i], CW_BASELINE_IN, CW_BASELINE_ABSMAX),
			i);
	}
	for (unsigned i = 0; i < CW_BASELINE_N_TENSORS; i++)
		cr_expect_eq(file.counters[i], 0, "counter %u", i);
	cr_expect_eq(file.counters[CW_BASELINE_N_TENSORS], 2 * total);
}

Test(baseline_collect, counts_what_was_written_over)
{
	for (unsigned i = 0; i < CW_REC_RING_OPS + 100; i++) {
		uint64_t op = call();

		sample(op, i + 1, false, i);
	}
	poll_now();
	finish();
	cr_expect_eq(file.run.n_rows, CW_REC_RING_OPS);
	cr_expect_eq(file.counters[CW_BASELINE_N_LOST_OPS], 100);
	cr_expect_eq(file.counters[CW_BASELINE_N_LOST_TENSORS],
		     CW_REC_RING_OPS + 100 - CW_REC_SUMMARY_RING);
	cr_expect_eq(file.counters[CW_BASELINE_N_TENSORS], CW_REC_SUMMARY_RING);
}

static const struct cw_summary_taken *kept_all(void)
{
	char path[128];
	struct stat st;
	void *at;
	int fd;

	cr_assert_eq(cw_baseline_collector_keep_all(collector, dir), 0);
	snprintf(path, sizeof(path), "%s/" CW_SUMMARY_TAKEN_NAME, dir, rec->header->pid,
		 (unsigned long long)rec->header->created_wall_ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && fstat(fd, &st) == 0, "%s", path);
	cr_assert(st.st_size == sizeof(struct cw_summary_taken) && (st.st_mode & 077) == 0);
	at = mmap(NULL, sizeof(struct cw_summary_taken), PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(at, MAP_FAILED);
	close(fd);
	return at;
}

Test(baseline_collect, tells_a_rank_that_waits_what_it_has)
{
	const struct cw_summary_taken *taken = kept_all();

	cr_expect_eq(taken->magic, CW_SUMMARY_TAKEN_MAGIC);
	for (unsigned i = 0; i < CW_REC_SUMMARY_RING + 2; i++)
		sample(call(), i + 1, false, i);
	cr_expect_eq(taken->newest[2], 0, "not read yet");
	poll_now();
	for (uint64_t i = 3; i < CW_REC_SUMMARY_RING + 3; i++)
		cr_expect_eq(taken->newest[i % CW_REC_SUMMARY_RING], i);
	finish();
	cr_expect_eq(taken->newest[5], UINT64_MAX, "the collector has stopped reading");
	cr_expect_not(said.waited, "the agent knows nothing of it, and has written over two");
	cr_expect_eq(file.counters[CW_BASELINE_N_LOST_TENSORS], 2);
}

/* An agent that waits leaves out numbers whose place is not free; a device may be far behind. */
Test(baseline_collect, takes_all_of_a_rank_that_waits)
{
	uint64_t first = call();

	kept_all();
	rec->header->has |= CW_REC_HAS_READER;
	launched += 3 * CW_REC_SUMMARY_RING;
	sample(first, 1, false, 3);
	poll_now();
	now_ns += 50000 * CW_NS_PER_MS;
	poll_now();
	sample(first, 1, true, 12);
	poll_now();
	finish();
	cr_expect(said.waited);
	cr_expect_eq(file.counters[CW_BASELINE_N_LOST_TENSORS], 0);
	cr_expect_eq(file.counters[CW_BASELINE_N_TENSORS], 2);
}

Test(baseline_collect, reads_a_busy_record_more_often)
{
	int64_t calm, busy;

	for (int i = 0; i < 20; i++)
		poll_now();
	calm = cw_baseline_collector_pause_ns(collector);
	for (unsigned i = 0; i < 100; i++)
		sample(call(), i + 1, false, i);
	poll_now();
	busy = cw_baseline_collector_pause_ns(collector);
	cr_expect_eq(calm, 50 * CW_NS_PER_MS);
	cr_expect_leq(busy, calm * 2 / 5);
}

/* Which share is looked at follows from the communicator's id, which the next run does not have. */
Test(baseline_collect, keeps_nothing_of_a_tensor_that_was_sampled)
{
	uint64_t op = call();

	sample(op, 1, false, 3)->elements = 5;
	sample(op, 1, true, 3)->stride_log2_plus_1 = 2;
	poll_now();
	finish();
	cr_expect_eq(file.rows[0].unit, CW_BASELINE_UNIT_ROW);
	cr_expect_eq(file.counters[CW_BASELINE_N_PARTIAL], 2);
}

Test(baseline_collect, takes_ops_of_a_group_when_they_have_their_numbers)
{
	uint64_t op = cw_test_record_enter(
		rec, comm,
		&(struct cw_rec_op){ .kind = CW_OP_ALL_REDUCE,
				     .flags = CW_OPF_GROUPED | CW_OPF_QUEUED | CW_OPF_RETURNED,
				     .root_or_peer = -1,
				     .count = 10 });

	poll_now();
	cw_test_record_return(rec, comm, op, 0);
	poll_now();
	finish();
	cr_assert_eq(file.run.n_rows, 1);
	cr_expect_eq(file.rows[0].seq, 1);
}

Test(baseline_collect, waits_for_what_comes_out_of_a_group)
{
	uint64_t op = cw_test_record_enter(rec, comm,
					   &(struct cw_rec_op){ .kind = CW_OP_ALL_REDUCE,
								.flags = CW_OPF_GROUPED,
								.root_or_peer = -1,
								.count = 10 });

	cw_test_record_return(rec, comm, op, 0);
	sample(op, 1, false, 3);
	poll_now();
	sample(op, 1, true, 12);
	poll_now();
	finish();
	cr_assert_eq(file.run.n_rows, 1);
	cr_expect_eq(file.rows[0].unit & ~CW_BASELINE_UNIT_MASK,
		     CW_BASELINE_HAS_IN | CW_BASELINE_HAS_OUT);
	cr_expect_eq(file.counters[CW_BASELINE_N_LOST_TENSORS], 0);
}

Test(baseline_collect, does_not_write_over_another_processes_baseline)
{
	const struct cw_summary_taken *taken;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/rank-2.baseline", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	call();
	now_ns += CW_NS_PER_MS;
	taken = kept_all();
	cr_expect_eq(cw_baseline_collector_poll(collector, now_ns), -EEXIST);
	cr_expect_eq(taken->newest[0], UINT64_MAX, "the agent must not wait for a reader");
	cr_expect_eq(cw_baseline_collector_free(collector, &said), -EEXIST);
	collector = NULL;
	cr_expect_eq(said.rank, 2);
	cr_expect_eq(said.n_ops, 0);
}
