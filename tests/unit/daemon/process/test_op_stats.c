/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/process/op_stats.h"
#include "tests/support/record/record_writer.h"

static struct cw_test_record *rec;
static struct cw_record *reader;
static struct cw_op_stats stats;
static struct cw_op_totals totals;
static int comm;
static int64_t now_ns = 1;

static void set_up(void)
{
	rec = cw_test_record_new();
	comm = cw_test_record_comm(rec, 0x77, 4, 2);
	(void)snprintf(rec->comms[comm].name, sizeof(rec->comms[comm].name), "dp");
	cr_assert_eq(cw_record_open(cw_test_record_dup(rec), true, &reader, NULL), 0);
}

static void tear_down(void)
{
	cw_op_stats_fini(&stats);
	cw_record_close(reader);
	cw_test_record_free(rec);
}

TestSuite(op_stats, .init = set_up, .fini = tear_down);

/* A call that takes call_ns. */
static void op(unsigned kind, uint64_t count, int64_t call_ns)
{
	uint64_t index = cw_test_record_collective(rec, comm, kind, count);

	rec->now_ns += call_ns;
	cw_test_record_return(rec, comm, index, 0);
}

static void sample(void)
{
	now_ns += CW_NS_PER_S;
	cr_assert_eq(cw_record_refresh(reader), 0);
	cw_op_stats_sample(&stats, reader, now_ns, &totals);
}

static const struct cw_op_row *row(unsigned kind, unsigned size_class)
{
	for (size_t i = 0; i < stats.n_rows; i++)
		if (stats.rows[i].kind == kind && stats.rows[i].size_class == size_class)
			return &stats.rows[i];
	return NULL;
}

Test(op_stats, sizes_have_classes)
{
	cr_assert_eq(cw_op_stats_size_class(0), 0);
	cr_assert_eq(cw_op_stats_size_class(4096), 0);
	cr_assert_eq(cw_op_stats_size_class(4097), 1);
	cr_assert_eq(cw_op_stats_size_class(65536), 1);
	cr_assert_eq(cw_op_stats_size_class(1 << 20), 2);
	cr_assert_eq(cw_op_stats_size_class(256ull << 20), 4);
	cr_assert_eq(cw_op_stats_size_class((256ull << 20) + 1), 5);
	cr_assert_eq(cw_op_stats_size_class(UINT64_MAX), 5);
}

Test(op_stats, each_op_counts_once_by_kind_comm_and_size)
{
	op(CW_OP_ALL_REDUCE, 100, 5000);
	op(CW_OP_ALL_REDUCE, 200, 7000);
	op(CW_OP_ALL_REDUCE, 100000, 1000);
	op(CW_OP_ALL_GATHER, 10, 1000);
	sample();
	sample();
	cr_assert_eq(stats.n_rows, 3);
	cr_assert_not_null(row(CW_OP_ALL_REDUCE, 0));
	cr_assert_eq(row(CW_OP_ALL_REDUCE, 0)->sums.ops, 2);
	cr_assert_eq(row(CW_OP_ALL_REDUCE, 0)->sums.bytes, 1200);
	cr_assert_geq(row(CW_OP_ALL_REDUCE, 0)->sums.call_ns, 12000);
	cr_assert_str_eq(row(CW_OP_ALL_REDUCE, 0)->comm_name, "dp");
	cr_assert_eq(row(CW_OP_ALL_REDUCE, 0)->nranks, 4);
	cr_assert_eq(row(CW_OP_ALL_REDUCE, 2)->sums.bytes, 400000);
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].ops, 3);
	cr_assert_eq(totals.kinds[CW_OP_ALL_GATHER].ops, 1);
	op(CW_OP_ALL_GATHER, 10, 1000);
	sample();
	cr_assert_eq(totals.kinds[CW_OP_ALL_GATHER].ops, 2);
	cr_assert_eq(stats.lost, 0);
}

/* One slow call of a hundred moves neither the median nor nine tenths. */
Test(op_stats, calls_have_quantiles)
{
	const struct cw_durations *calls;

	for (unsigned i = 0; i < 100; i++)
		op(CW_OP_ALL_REDUCE, 100, i == 50 ? 80000000 : i % 10 == 0 ? 400000 : 20000);
	sample();
	calls = &row(CW_OP_ALL_REDUCE, 0)->sums.calls;
	cr_assert_eq(calls->n, 100);
	cr_assert_float_eq((double)cw_durations_quantile_ns(calls, 50), 20000, 2500);
	cr_assert_float_eq((double)cw_durations_quantile_ns(calls, 90), 20000, 2500);
	cr_assert_float_eq((double)cw_durations_quantile_ns(calls, 99), 400000, 50000);
	cr_assert_geq(calls->max_ns, 80000000);
}

Test(op_stats, op_that_has_not_returned_is_waited_for)
{
	uint64_t index = cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 8);

	sample();
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].ops, 0);
	cw_test_record_return(rec, comm, index, 0);
	sample();
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].ops, 1);
}

Test(op_stats, op_that_never_returns_does_not_hold_the_rest_up_for_ever)
{
	(void)cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 8);
	for (unsigned i = 0; i < 5000; i++)
		op(CW_OP_REDUCE, 8, 100);
	sample();
	cr_assert_eq(stats.lost, 1);
	cr_assert_eq(totals.kinds[CW_OP_REDUCE].ops, 5000);
}

Test(op_stats, ops_that_were_overwritten_are_said_to_be_lost)
{
	for (unsigned i = 0; i < CW_REC_RING_OPS + 100; i++)
		op(CW_OP_BROADCAST, 8, 100);
	sample();
	cr_assert_eq(stats.lost, 100);
	cr_assert_eq(totals.kinds[CW_OP_BROADCAST].ops, CW_REC_RING_OPS);
}

Test(op_stats, rows_are_bounded)
{
	for (unsigned i = 0; i < 90; i++) {
		comm = cw_test_record_comm(rec, 0x1000 + i, 4, 2);
		op(CW_OP_ALL_REDUCE, 8, 100);
	}
	sample();
	cr_assert_eq(stats.n_rows, CW_OP_STATS_ROWS);
	cr_assert_eq(stats.rows[CW_OP_STATS_ROWS - 1].comm_id, 0);
	cr_assert_eq(stats.rows[CW_OP_STATS_ROWS - 1].sums.ops, 90 - (CW_OP_STATS_ROWS - 1));
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].ops, 90);
}

Test(op_stats, at_most_once_a_second)
{
	sample();
	op(CW_OP_ALL_REDUCE, 8, 100);
	now_ns -= CW_NS_PER_S / 2;
	sample();
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].ops, 0);
}

static void time_entry(unsigned i, uint64_t publish, uint64_t begin_ns, uint64_t end_ns)
{
	rec->header->has |= CW_REC_HAS_DEVICE_TIME;
	rec->times[i] = (struct cw_rec_time){
		.publish = publish,
		.op_index = publish,
		.bytes = 1000,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.comm = (uint32_t)comm,
		.comm_generation = rec->comms[comm].generation,
		.kind = CW_OP_ALL_REDUCE,
	};
}

Test(op_stats, times_of_the_device_count_when_both_are_there)
{
	time_entry(1, 1, 5000, 5400);
	time_entry(2, 2, 9000, 9600);
	time_entry(3, 3, 9000, 0);
	time_entry(4, 0, 1, 2);
	sample();
	sample();
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].timed, 2);
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].device_ns, 1000);
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].device_max_ns, 600);
	cr_assert_eq(row(CW_OP_ALL_REDUCE, 0)->sums.timed_bytes, 2000);
	time_entry(3, 3, 9000, 9100);
	sample();
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].timed, 3);
}

Test(op_stats, times_that_make_no_sense_do_not_count)
{
	time_entry(1, 1, 5000, 4000);
	time_entry(2, 2, 1, UINT64_MAX);
	time_entry(3, 3, 5000, 6000);
	rec->times[3].kind = 250;
	sample();
	for (unsigned i = 0; i < CW_OP__MAX; i++)
		cr_assert_eq(totals.kinds[i].timed, 0);
}

static uint64_t called(unsigned kind, unsigned size)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CW_OP_BUCKETS; i++)
		n += totals.sized[kind][size].calls[i];
	return n;
}

Test(op_stats, totals_are_by_kind_and_size_and_in_buckets)
{
	const struct cw_op_sized *s = &totals.sized[CW_OP_ALL_REDUCE][0];

	op(CW_OP_ALL_REDUCE, 100, 5000);
	op(CW_OP_ALL_REDUCE, 100, 5001);
	op(CW_OP_ALL_REDUCE, 100, 11 * CW_NS_PER_S);
	op(CW_OP_ALL_REDUCE, 1 << 20, 1);
	time_entry(1, 1, 5000, 5400);
	sample();
	cr_assert_eq(s->calls[0], 1, "a bound is in its bucket");
	cr_assert_eq(s->calls[1], 1);
	cr_assert_eq(s->calls[CW_OP_BUCKETS - 1], 1);
	cr_assert_eq(s->call_ns, 11 * CW_NS_PER_S + 10001);
	cr_assert_eq(called(CW_OP_ALL_REDUCE, 0), 3);
	cr_assert_eq(called(CW_OP_ALL_REDUCE, 3), 1);
	cr_assert_eq(s->device[0], 1);
	cr_assert_eq(s->device_ns, 400);
	cr_assert_eq(s->timed_bytes, 1000);
}

/* A record may say anything; counters go up all the same. */
Test(op_stats, no_record_makes_what_is_added_up_turn_over)
{
	const struct cw_op_sized *s = &totals.sized[CW_OP_ALL_REDUCE][CW_OP_SIZES - 1];
	uint64_t bytes = 0, call_ns = 0;

	for (unsigned i = 0; i < 4; i++) {
		op(CW_OP_ALL_REDUCE, UINT64_C(1) << 61, INT64_MAX / 8);
		sample();
		cr_assert_gt(s->bytes, bytes);
		cr_assert_gt(s->call_ns, call_ns);
		bytes = s->bytes;
		call_ns = s->call_ns;
	}
}

/* As when the node forgets a process that ended ten minutes ago. */
Test(op_stats, totals_outlive_the_process)
{
	uint64_t lost;

	for (unsigned i = 0; i < CW_REC_RING_OPS + 100; i++)
		op(CW_OP_ALL_REDUCE, 100, 10);
	sample();
	lost = totals.lost;
	cr_assert_gt(lost, 0);
	cr_assert_eq(called(CW_OP_ALL_REDUCE, 0) + lost, CW_REC_RING_OPS + 100);
	cw_op_stats_fini(&stats);
	cr_assert_eq(totals.lost, lost);
	cr_assert_eq(called(CW_OP_ALL_REDUCE, 0) + lost, CW_REC_RING_OPS + 100);
	cr_assert_eq(totals.kinds[CW_OP_ALL_REDUCE].ops + lost, CW_REC_RING_OPS + 100);
}
