/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "tests/support/record/record_state_fixture.h"

TestSuite(record_state, .init = record_setup, .fini = record_teardown);

Test(record_state, a_comm_without_ops_has_nothing_pending)
{
	struct cw_record_state s = state_of(0);

	cr_expect_not(s.has_pending);
	cr_expect_not(s.has_last);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 0u);
}

Test(record_state, oldest_op_not_completed_is_pending)
{
	struct cw_record_state s;

	for (int i = 0; i < 5; i++)
		enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_progress(rec, 0, 3, 2);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.coll_seq, 3u);
	cr_expect_eq(s.pending.progress, CW_PROGRESS_REACHED);
	cr_expect_eq(s.pending_count, 3u);
	cr_expect_eq(s.last.coll_seq, 5u);
	cr_expect_eq(s.last.progress, CW_PROGRESS_ENQUEUED);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 2u);
	cr_expect(s.reached_known);
	cr_expect_eq(s.coll_reached, 3u);
}

Test(record_state, nothing_is_pending_when_all_completed)
{
	struct cw_record_state s;

	for (int i = 0; i < 50; i++)
		enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_progress(rec, 0, 50, 50);
	s = state_of(0);
	cr_expect_not(s.has_pending);
	cr_expect_eq(s.pending_count, 0u);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 50u);
	cr_expect_eq(s.coll_reached, 50u);
}

Test(record_state, words_count_on_past_32_bits)
{
	struct cw_record_state s;

	rec->comms[0].op_index = UINT32_MAX - 2ull;
	for (int i = 0; i < 6; i++)
		enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_progress(rec, 0, UINT32_MAX + 3ull, UINT32_MAX + 2ull);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.op_index, UINT32_MAX + 3ull);
	cr_expect_eq(s.coll_completed, 4u);
}

Test(record_state, each_op_is_judged_by_the_words_of_its_own_stream)
{
	uint16_t a = cw_test_record_slot(rec, 0, 0xa), b = cw_test_record_slot(rec, 0, 0xb);
	struct cw_record_state s;

	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, a), 0); /* 1 */
	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, b), 0); /* 2 */
	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, a), 0); /* 3 */
	cw_test_record_set_slot(rec, a, 3, 3);
	cw_test_record_set_slot(rec, b, 2, 0);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.op_index, 2u);
	cr_expect_eq(s.coll_completed, 1u, "3 is done, 2 is not: all up to 1");
	cr_expect_eq(s.coll_reached, 3u);
}

Test(record_state, ops_the_device_never_gets_are_not_pending_on_it)
{
	static const unsigned flags[] = { CW_OPF_CAPTURED, CW_OPF_DROPPED, CW_OPF_NO_COUNT };
	uint16_t slot = cw_test_record_slot(rec, 0, 0xa);
	struct cw_record_state s;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, flags[i], slot), 0);
	(void)enter_flagged(CW_OP_ALL_REDUCE, CW_OPF_QUEUED, slot);
	s = state_of(0);
	cr_expect_not(s.has_pending);
	/* A call that failed was never enqueued. */
	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, slot), 4);
	s = state_of(0);
	cr_expect_not(s.has_pending);
}

Test(record_state, a_host_call_is_pending_until_it_returns)
{
	uint64_t op = enter_flagged(CW_OP_COMM_SPLIT, 0, CW_REC_NO_SLOT);
	struct cw_record_state s = state_of(0);

	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.kind, CW_OP_COMM_SPLIT);
	cw_test_record_return(rec, 0, op, 0);
	s = state_of(0);
	cr_expect_not(s.has_pending);
}

Test(record_state, without_words_an_op_is_pending_only_on_the_host)
{
	uint64_t op = enter_flagged(CW_OP_ALL_REDUCE, 0, CW_REC_NO_SLOT);
	struct cw_record_state s = state_of(0);

	cr_expect(s.has_pending);
	cr_expect_not(s.completed_known);
	cw_test_record_return(rec, 0, op, 0);
	s = state_of(0);
	cr_expect_not(s.has_pending);
	cr_expect_not(s.completed_known, "returned says nothing about the device");
	cr_expect_eq(s.last.progress, CW_PROGRESS_UNKNOWN);
}

Test(record_state, an_untracked_op_before_a_completed_one_has_completed)
{
	struct cw_record_state s;

	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, CW_REC_NO_SLOT), 0);
	enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_progress(rec, 0, 2, 2);
	s = state_of(0);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 2u);
	cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, CW_REC_NO_SLOT), 0);
	s = state_of(0);
	cr_expect_not(s.completed_known, "the newest op could be either");
}

Test(record_state, a_word_ahead_of_everything_entered_is_not_believed)
{
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_progress(rec, 0, 9, 9);
	s = state_of(0);
	cr_expect_not(s.completed_known);
	cr_expect_eq(s.last.progress, CW_PROGRESS_UNKNOWN);
}

Test(record_state, words_of_a_slot_given_to_another_comm_do_not_count)
{
	struct cw_record_state s;

	enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_progress(rec, 0, 1, 1);
	rec->progress_info[0].comm_generation++;
	s = state_of(0);
	cr_expect_not(s.completed_known);
}

Test(record_state, a_host_far_ahead_of_the_device_is_followed_into_the_bulk_ring)
{
	struct cw_record_state s;

	for (int i = 0; i < 500; i++)
		enqueue(i % 2 ? CW_OP_ALL_REDUCE : CW_OP_ALL_GATHER);
	cw_test_record_progress(rec, 0, 101, 100);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.coll_seq, 101u);
	cr_expect_eq(s.pending.kind, CW_OP_ALL_GATHER);
	cr_expect_eq(s.pending_count, 400u);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 100u);
	cr_expect_eq(s.coll_reached, 101u);
	cr_expect_eq(s.last.coll_seq, 500u);
	/* and keeps following as both move on */
	for (int i = 0; i < 3 * CW_REC_RING_OPS; i++) {
		uint64_t op = cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 10);

		if (i % 97 == 0) {
			cw_test_record_progress(rec, 0, op - 200, op - 300);
			s = state_of(0);
			cr_assert(s.completed_known);
			cr_assert_eq(s.coll_completed, op - 300);
			cr_assert_eq(s.coll_reached, op - 200);
			cr_assert_eq(s.pending.coll_seq, op - 299);
			cr_assert_eq(s.pending_count, 300u);
		}
	}
}

/* All calls of comm 0 but its last 32, which are in its own ring, have left the record. */
static void overwrite_the_bulk_ring(void)
{
	for (int i = 0; i < CW_REC_RING_OPS; i++)
		(void)cw_test_record_p2p(rec, 1, CW_OP_SEND, 1, 1);
}

static void expect_lost(const struct cw_record_state *s, uint64_t seq, unsigned progress)
{
	cr_assert(s->has_pending);
	cr_expect_eq(s->pending.kind, CW_OP_NONE, "no ring holds its kind");
	cr_expect_eq(s->pending.coll_seq, seq);
	cr_expect_eq(s->pending.progress, progress);
	cr_expect(s->completed_known);
	cr_expect_eq(s->coll_completed, seq - 1);
	cr_expect(s->reached_known);
}

Test(record_state, words_number_the_collective_that_both_rings_have_lost)
{
	struct cw_record_state s;

	cw_test_record_comm(rec, 0x2222, 8, 3);
	for (int i = 0; i < 50; i++)
		enqueue(CW_OP_ALL_REDUCE);
	overwrite_the_bulk_ring();
	cw_test_record_progress(rec, 0, 5, 4);
	s = state_of(0);
	expect_lost(&s, 5, CW_PROGRESS_REACHED);
	cr_expect_eq(s.coll_reached, 5u);
	cr_expect_eq(s.pending_count, 46u);
	cr_expect_gt(s.pending.enter_mono_ns, 0);
	cr_expect_leq(s.pending.enter_mono_ns, s.last.enter_mono_ns);
	cw_test_record_progress(rec, 0, 4, 4);
	s = state_of(0);
	expect_lost(&s, 5, CW_PROGRESS_ENQUEUED);
	cr_expect_eq(s.coll_reached, 4u);
	cw_test_record_progress(rec, 0, 10, 4);
	s = state_of(0);
	expect_lost(&s, 5, CW_PROGRESS_REACHED);
	cr_expect_eq(s.coll_reached, 10u, "a group");
	cw_test_record_progress(rec, 0, 20, 4);
	s = state_of(0);
	cr_expect_eq(s.coll_completed, 4u);
	cr_expect_eq(s.coll_reached, 20u, "the group ends in what the comm's ring holds");
	cw_test_record_progress(rec, 0, 0, 0);
	s = state_of(0);
	expect_lost(&s, 1, CW_PROGRESS_ENQUEUED);
	cw_test_record_progress(rec, 0, 18, 18);
	s = state_of(0);
	cr_expect_eq(s.pending.coll_seq, 19u);
	cr_expect_eq(s.pending.kind, CW_OP_ALL_REDUCE, "the oldest that the record holds");
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 18u);
}

Test(record_state, a_host_more_than_a_ring_ahead_is_judged_by_the_words)
{
	const uint64_t stuck = 9807, calls = stuck + 10 * CW_REC_RING_OPS;
	struct cw_record_state s;

	for (uint64_t i = 0; i < calls; i++)
		enqueue(CW_OP_ALL_REDUCE);
	cw_test_record_progress(rec, 0, stuck, stuck - 1);
	s = state_of(0);
	expect_lost(&s, stuck, CW_PROGRESS_REACHED);
	cr_expect_eq(s.coll_reached, stuck);
	cr_expect_eq(s.pending_count, calls - stuck + 1);
	cr_expect_eq(s.last.coll_seq, calls);
}

Test(record_state, host_calls_before_the_first_collective_do_not_move_the_number)
{
	struct cw_record_state s;

	for (int i = 0; i < 3; i++)
		cw_test_record_return(
			rec, 0,
			enter_flagged(CW_OP_WINDOW_REGISTER, CW_OPF_NO_COUNT, CW_REC_NO_SLOT), 0);
	cw_test_record_comm(rec, 0x2222, 8, 3);
	for (int i = 0; i < 50; i++)
		enqueue(CW_OP_ALL_REDUCE);
	overwrite_the_bulk_ring();
	cw_test_record_progress(rec, 0, 8, 7);
	s = state_of(0);
	expect_lost(&s, 5, CW_PROGRESS_REACHED);
	cr_expect_eq(s.pending.op_index, 8u);
}

static void expect_unknown(const char *why)
{
	struct cw_record_state s = state_of(0);

	cr_expect(s.has_pending, "%s", why);
	cr_expect_neq(s.pending.kind, CW_OP_NONE, "%s", why);
	cr_expect_not(s.completed_known, "%s", why);
	cr_expect_not(s.reached_known, "%s", why);
}

Test(record_state, what_both_rings_have_lost_is_unknown_where_words_do_not_number_it)
{
	cw_test_record_comm(rec, 0x2222, 8, 3);
	for (int i = 0; i < 50; i++)
		enqueue(CW_OP_ALL_REDUCE);
	overwrite_the_bulk_ring();
	cw_test_record_progress(rec, 0, 5, 4);
	rec->comms[0].flags |= CW_REC_COMM_PROGRESS_LOST;
	expect_unknown("a call had no words");
	rec->comms[0].flags = 0;
	rec->header->progress_untracked = 1;
	expect_unknown("a call's words were left out");
	rec->header->progress_untracked = 0;
	rec->header->has |= CW_REC_HAS_REPLAYS;
	expect_unknown("a replay has many numbers");
	rec->header->has &= ~(unsigned)CW_REC_HAS_REPLAYS;
	(void)cw_test_record_slot(rec, 0, 0xb);
	expect_unknown("the call may be on either stream");
}

Test(record_state, a_message_before_the_lost_collective_makes_its_number_unknown)
{
	cw_test_record_comm(rec, 0x2222, 8, 3);
	for (int i = 0; i < 50; i++) {
		enqueue(CW_OP_ALL_REDUCE);
		if (i == 7)
			cw_test_record_return(rec, 0, cw_test_record_p2p(rec, 0, CW_OP_SEND, 1, 1),
					      0);
	}
	overwrite_the_bulk_ring();
	cw_test_record_progress(rec, 0, 12, 11);
	expect_unknown("11 completed ops are 10 or 11 collectives");
}

/* Each unfinished op of a hostile rank would have to be read anew at each sample. */
Test(record_state, gives_up_instead_of_rereading_for_ever)
{
	struct cw_record_state s;

	for (int i = 0; i < 500; i++)
		(void)cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 10);
	cw_test_record_progress(rec, 0, 101, 100);
	s = state_of(0);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 100u);
	for (int i = 0; i < 2000; i++)
		(void)cw_test_record_collective(rec, 0, CW_OP_ALL_REDUCE, 10);
	s = state_of(0);
	cr_expect_not(s.completed_known, "unknown, not some number");
	cr_expect(s.has_pending);
}

Test(record_state, finds_a_call_that_is_stuck_behind_the_comms_own_ring)
{
	struct cw_record_state s;

	(void)enter_flagged(CW_OP_WINDOW_REGISTER, 0, CW_REC_NO_SLOT); /* in another thread */
	for (int i = 0; i < 100; i++)
		cw_test_record_return(rec, 0, enter_flagged(CW_OP_ALL_REDUCE, 0, CW_REC_NO_SLOT),
				      0);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.kind, CW_OP_WINDOW_REGISTER);
	cr_expect_not(s.completed_known);
}

Test(record_state, collectives_pushed_out_by_p2p_are_completed_when_later_ops_are)
{
	struct cw_record_state s;

	for (int i = 0; i < 7; i++)
		enqueue(CW_OP_ALL_REDUCE);
	for (int i = 0; i < 2 * CW_REC_RING_OPS; i++)
		(void)cw_test_record_p2p(rec, 0, CW_OP_SEND, 1, 1);
	cw_test_record_progress(rec, 0, rec->comms[0].op_index, rec->comms[0].op_index);
	s = state_of(0);
	cr_expect(s.completed_known);
	cr_expect_eq(s.coll_completed, 7u);
	cw_test_record_progress(rec, 0, rec->comms[0].op_index, 3);
	s = state_of(0);
	cr_expect_not(s.completed_known);
}

Test(record_state, a_reused_entry_starts_afresh)
{
	struct cw_record_state s;

	for (int i = 0; i < 100; i++)
		enqueue(CW_OP_ALL_REDUCE);
	s = state_of(0);
	cr_expect(s.has_pending);
	cw_test_record_reuse_comm(rec, 0, 0x9999);
	s = state_of(0);
	cr_expect_not(s.has_pending);
	cr_expect_not(s.has_last);
	enqueue(CW_OP_BROADCAST);
	s = state_of(0);
	cr_expect_eq(s.pending_count, 1u);
	cr_expect_eq(s.pending.coll_seq, 1u);
	cr_expect_eq(s.coll_completed, 0u);
	cr_expect(s.completed_known);
}

/* A queued op is indexed before its group is launched: its flags must not be remembered. */
Test(record_state, ops_of_a_group_count_once_it_is_launched)
{
	uint16_t slot = cw_test_record_slot(rec, 0, 0xa);
	struct cw_record_state s;

	for (int i = 0; i < 40; i++)
		(void)enter_flagged(CW_OP_ALL_REDUCE, CW_OPF_GROUPED | CW_OPF_QUEUED, slot);
	s = state_of(0);
	cr_expect_not(s.has_pending);
	for (uint64_t op = 1; op <= 40; op++)
		cw_test_record_return(rec, 0, op, 0);
	cw_test_record_set_slot(rec, slot, 40, 2);
	s = state_of(0);
	cr_assert(s.has_pending);
	cr_expect_eq(s.pending.coll_seq, 3u);
	cr_expect_eq(s.coll_completed, 2u);
}

/*
 * Compares with a model that remembers everything: for each interleaving, every claimed
 * fact is right.
 */
Test(record_state, agrees_with_a_model_that_forgets_nothing)
{
	enum { OPS = 400 };
	unsigned seed = 7;

	for (int round = 0; round < 60; round++) {
		uint64_t done = 0, known = 0;

		record_teardown();
		record_setup();
		cw_test_record_comm(rec, 0x2222, 8, 3);
		for (uint64_t i = 1; i <= OPS; i++) {
			struct cw_record_state s;

			enqueue(CW_OP_ALL_REDUCE);
			for (int n = rand_r(&seed) % 3; n > 0; n--)
				(void)cw_test_record_p2p(rec, 1, CW_OP_RECV, 1, 1);
			if (rand_r(&seed) % 10)
				continue;
			done += (unsigned)rand_r(&seed) % (i - done + 1);
			cw_test_record_progress(rec, 0, done, done);
			s = state_of(0);
			cr_assert_eq(s.has_pending, done < i);
			if (s.has_pending)
				cr_assert_eq(s.pending.coll_seq, done + 1);
			cr_assert(s.completed_known);
			cr_assert_eq(s.coll_completed, done);
			known++;
		}
		cr_assert_gt(known, 10u);
	}
}
