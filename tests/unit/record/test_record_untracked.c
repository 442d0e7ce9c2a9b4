/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about ops without progress writes: COLLWATCH_PROGRESS=auto. */
#include <criterion/criterion.h>

#include "tests/support/record/record_state_fixture.h"

TestSuite(record_untracked, .init = record_setup, .fini = record_teardown);

/* The next op of the comm, left out `since` ops after the newest that has writes. */
static void leave_out(unsigned since)
{
	uint16_t slot = cw_rec_slot_untracked(0, since);

	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, CW_OPF_UNTRACKED, slot), 0);
}

Test(record_untracked, an_untracked_op_is_unknown_where_nothing_follows)
{
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	leave_out(1);
	leave_out(2);
	cw_test_record_progress(rec, 0, 1, 1);
	s = state_of(0);
	cr_expect_not(s.completed_known);
	cr_expect_not(s.reached_known);
	cr_expect_not(s.has_pending);
	cr_expect_eq(s.last.progress, CW_PROGRESS_UNKNOWN);
	cr_expect(s.last.flags & CW_OPF_UNTRACKED);
}

Test(record_untracked, an_untracked_op_has_completed_once_its_stream_comes_to_a_later_op)
{
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	for (unsigned since = 1; since <= CW_REC_SLOT_SINCE_MAX; since++)
		leave_out(since);
	enqueue(CW_OP_ALL_REDUCE); /* 17 */
	cw_test_record_progress(rec, 0, 17, 1);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.coll_seq, 17u);
	cr_expect_eq(s.pending_count, 1u);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 16u);
	cr_expect_eq(s.coll_reached, 17u);
}

Test(record_untracked, an_untracked_op_is_pending_behind_an_op_that_has_not_completed)
{
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	enqueue(CW_OP_ALL_REDUCE);
	leave_out(1);
	leave_out(2);
	cw_test_record_progress(rec, 0, 2, 1);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.coll_seq, 2u);
	cr_expect_eq(s.pending_count, 3u);
	cr_expect_eq(s.last.progress, CW_PROGRESS_ENQUEUED);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 1u);
	cr_expect_eq(s.coll_reached, 2u);
}

Test(record_untracked, between_two_ops_with_writes_it_is_unknown_and_the_later_one_pending)
{
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	leave_out(1);
	enqueue(CW_OP_ALL_REDUCE); /* 3 */
	leave_out(1);
	cw_test_record_progress(rec, 0, 1, 1);
	s = state_of(0);
	cr_expect_not(s.completed_known);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.coll_seq, 3u);
	cr_expect_eq(s.pending.progress, CW_PROGRESS_ENQUEUED);
	cr_expect_eq(s.last.progress, CW_PROGRESS_ENQUEUED, "behind 3");
}

Test(record_untracked, an_untracked_op_on_one_stream_has_completed_with_a_later_op_on_another)
{
	uint16_t other = cw_test_record_slot(rec, 0, 0xb);
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	leave_out(1);
	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, other), 0);
	cw_test_record_progress(rec, 0, 1, 1);
	cw_test_record_set_slot(rec, other, 3, 3);
	s = state_of(0);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 3u);
	cr_expect_not(s.has_pending);
}

/* An older reader, which does not know that mark, sees an op without a slot. */
Test(record_untracked, the_mark_of_an_untracked_op_names_no_slot)
{
	cr_expect_geq(cw_rec_slot_untracked(0, 1), CW_REC_PROGRESS_SLOTS);
	cr_expect_neq(cw_rec_slot_untracked(CW_REC_PROGRESS_SLOTS - 1, CW_REC_SLOT_SINCE_MAX),
		      CW_REC_NO_SLOT);
	enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_return(rec, 0,
			      enter_flagged(CW_OP_ALL_REDUCE, 0, cw_rec_slot_untracked(0, 1)), 0);
	cw_test_record_progress(rec, 0, 1, 1);
	cr_expect_eq(state_of(0).last.progress, CW_PROGRESS_UNKNOWN);
}

Test(record_untracked, a_stranger_may_say_untracked_of_anything)
{
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	for (unsigned slot = 0; slot <= UINT16_MAX; slot += 77)
		cw_test_record_return(
			rec, 0, enter_flagged(CW_OP_ALL_REDUCE, CW_OPF_UNTRACKED, (uint16_t)slot),
			0);
	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, CW_OPF_UNTRACKED, UINT16_MAX),
			      0);
	s = state_of(0);
	cr_expect_eq(s.last.progress, CW_PROGRESS_UNKNOWN);
}
