/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads a record says are inside an NCCL call. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/record/record_state_fixture.h"

#define MAX 4

TestSuite(record_inside, .init = record_setup, .fini = record_teardown);

static struct cw_rec_wait calls[MAX];

static uint64_t enter_by(uint32_t tid, int comm, unsigned flags, int64_t at_ns)
{
	const struct cw_rec_op op = { .kind = CW_OP_ALL_REDUCE,
				      .count = 10,
				      .tid = tid,
				      .flags = (uint16_t)flags,
				      .progress_slot = CW_REC_NO_SLOT };

	rec->now_ns = at_ns;
	return cw_test_record_enter(rec, comm, &op);
}

static struct cw_rec_op *newest(int comm)
{
	return &rec->comms[comm].ops[(rec->comms[comm].ring_ticket - 1) % CW_REC_COMM_OPS];
}

static size_t inside(void)
{
	memset(calls, 0xee, sizeof(calls));
	cr_assert_eq(cw_record_refresh(reader), 0);
	return cw_record_inside(reader, calls, MAX);
}

static uint64_t since_of(uint32_t tid)
{
	size_t n = inside();

	for (size_t i = 0; i < n; i++)
		if (calls[i].tid == tid)
			return calls[i].since_ns;
	return 0;
}

Test(record_inside, a_thread_is_inside_from_its_entry_to_its_return)
{
	uint64_t op;

	cr_expect_eq(inside(), 0u);
	op = enter_by(7, 0, 0, 5000);
	cr_assert_eq(inside(), 1u);
	cr_expect_eq(calls[0].tid, 7u);
	cr_expect_eq(calls[0].since_ns, 5000u);
	cw_test_record_return(rec, 0, op, 0);
	cr_expect_eq(inside(), 0u);
}

/* The counters of a communicator say nothing where several threads use it. */
Test(record_inside, believes_the_op_that_returned_and_no_counter)
{
	cw_test_record_return(rec, 0, enter_by(7, 0, 0, 5000), 0);
	rec->comms[0].op_returned = 0;
	cr_expect_eq(inside(), 0u);
	newest(0)->flags = 0;
	cr_expect_eq(inside(), 0u, "it has a time of return");
}

Test(record_inside, a_queued_op_says_nothing_until_its_group_is_launched)
{
	(void)enter_by(7, 0, CW_OPF_GROUPED | CW_OPF_QUEUED, 5000);
	cr_expect_eq(inside(), 0u);
	newest(0)->flags = CW_OPF_GROUPED;
	cr_expect_eq(since_of(7), 5000u);
}

Test(record_inside, a_thread_in_several_communicators_counts_once_from_its_latest_entry)
{
	cw_test_record_comm(rec, 0x2222, 8, 3);
	(void)enter_by(7, 1, CW_OPF_GROUPED, 5000);
	(void)enter_by(7, 0, CW_OPF_GROUPED, 6000);
	(void)enter_by(7, 1, CW_OPF_GROUPED, 7000);
	cr_assert_eq(inside(), 1u);
	cr_expect_eq(calls[0].since_ns, 7000u);
}

Test(record_inside, sees_each_thread_of_a_communicator)
{
	(void)enter_by(7, 0, 0, 5000);
	(void)enter_by(8, 0, 0, 6000);
	cr_expect_eq(inside(), 2u);
	cr_expect_eq(since_of(7), 5000u);
	cr_expect_eq(since_of(8), 6000u);
}

/* It left that call without returning, or another way. */
Test(record_inside, a_later_op_of_the_thread_that_returned_ends_it)
{
	(void)enter_by(7, 0, 0, 5000);
	cw_test_record_return(rec, 0, enter_by(7, 0, 0, 6000), 0);
	cr_expect_eq(inside(), 0u);
}

Test(record_inside, leaves_out_ops_of_the_communicator_that_had_the_entry_before)
{
	struct cw_rec_op old;

	(void)enter_by(7, 0, 0, 5000);
	old = *newest(0);
	cw_test_record_reuse_comm(rec, 0, 0x3333);
	rec->comms[0].op_index = rec->comms[0].ring_ticket = 1;
	rec->comms[0].ops[0] = old;
	cr_expect_eq(inside(), 0u);
	rec->comms[0].ops[0].comm_generation++;
	cr_expect_eq(since_of(7), 5000u);
}

Test(record_inside, times_of_a_tsc_clock_come_out_as_monotonic_ones)
{
	rec->header->clock = CW_REC_CLOCK_TSC;
	rec->header->tsc_base = 1000;
	rec->header->tsc_base_ns = 70000;
	rec->header->tsc_mult = 3;
	rec->header->tsc_shift = 1;
	(void)enter_by(7, 0, 0, 3000);
	cr_expect_eq(since_of(7), 73000u);
}

Test(record_inside, an_op_without_thread_or_time_is_nobodys)
{
	(void)enter_by(0, 0, 0, 5000);
	(void)enter_by(7, 0, 0, 5000);
	newest(0)->enter_ns = 0;
	cr_expect_eq(inside(), 0u);
}

Test(record_inside, takes_nccls_own_word_for_no_return)
{
	(void)enter_by(7, 0, 0, 5000);
	rec->comms[0].flags = CW_REC_COMM_PROFILER;
	cr_expect_eq(inside(), 0u);
}

Test(record_inside, more_threads_than_there_is_room_for_are_omitted)
{
	for (uint32_t tid = 1; tid <= 3 * MAX; tid++)
		(void)enter_by(tid, 0, 0, 5000);
	cr_expect_eq(inside(), (size_t)MAX);
}
