/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts where ops got no progress writes: COLLWATCH_PROGRESS=auto. */
#include <criterion/criterion.h>

#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_untracked, .init = verdict_setup, .fini = verdict_teardown);

/* All but rank 3 have called 41 to `entered`; those up to `to` got no writes. */
static struct sb_comm *all_but_rank_3(uint64_t to, uint64_t entered)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 40);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 3)
			sb_leave_out(c, m, to, entered, 20 * SB_S);
	return c;
}

Test(verdict_untracked, names_who_is_missing_where_the_last_op_of_the_others_was_untracked)
{
	(void)all_but_rank_3(41, 41);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict_untracked, names_who_is_missing_where_hosts_ran_on)
{
	(void)all_but_rank_3(47, 300);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

/* The culprit's own newest op got writes: it ends every step. */
Test(verdict_untracked, is_certain_where_one_of_those_who_wait_is_seen_to)
{
	struct sb_comm *c = all_but_rank_3(47, 300);

	c->members[5].untracked_to = 0;
	c->members[5].reached = 41;
	c->members[6].untracked_to = 41;
	b->ranks[3].host_wait = CW_HOST_WAIT_STORAGE;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.coll_seq, 41);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

/* Perhaps no rank has completed 40, and rank 3's host waits for that. */
Test(verdict_untracked, is_at_most_possible_where_the_last_op_of_the_missing_rank_was_untracked)
{
	struct sb_comm *c = all_but_rank_3(47, 300);

	for (uint32_t m = 0; m < 8; m++)
		c->members[m].completed = 38;
	sb_leave_out(c, 3, 40, 40, 20 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict_untracked, says_nothing_where_all_have_entered_and_nobody_sees_how_far_they_are)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 40);

	for (uint32_t m = 0; m < 8; m++)
		sb_leave_out(c, m, 41, 41, 100 * SB_S);
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_HEALTHY);
	for (uint32_t m = 0; m < 8; m++)
		sb_leave_out(c, m, 47, 300, 100 * SB_S);
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_HEALTHY);
}

/* All are in 41: of rank 5 it is seen, of the others not, and the host of 4 waits elsewhere. */
Test(verdict_untracked, does_not_blame_the_one_who_is_seen_inside_what_all_have_entered)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 40), *other;

	for (uint32_t m = 0; m < 8; m++)
		sb_leave_out(c, m, 41, 41, 20 * SB_S);
	c->members[5].untracked_to = 0;
	c->members[5].reached = 41;
	expect(CW_CLASS_UNKNOWN, "progress_unknown", "", "5");
	other = sb_comm(b, "pair", 4, 2, 1, 7);
	sb_waits(other, 0, 20 * SB_S);
	expect(CW_CLASS_UNKNOWN, "progress_unknown", "", "4-5");
	sb_leave_out(c, 4, 44, 60, 20 * SB_S); /* its host ran on */
	expect(CW_CLASS_UNKNOWN, "progress_unknown", "", "4-5");
}

/*
 * Two ranks of tp are inside an op without progress writes. Each has a pair partner on a further
 * comm that waits for it. With progress writes the verdict would be in_collective.
 */
static void wait_for_who_is_unseen(uint64_t to, uint64_t entered)
{
	struct sb_comm *tp = sb_comm(b, "tp", 0, 2, 1, 40);

	for (uint32_t m = 0; m < 2; m++) {
		struct sb_comm *dp = sb_comm(b, m ? "dp1" : "dp0", m, 2, 2, 7);

		sb_leave_out(tp, m, to, entered, 20 * SB_S);
		sb_waits(dp, 1, 20 * SB_S);
	}
}

Test(verdict_untracked, does_not_blame_ranks_that_may_be_held_up_unseen)
{
	wait_for_who_is_unseen(41, 41);
	expect(CW_CLASS_UNKNOWN, "progress_untracked", "", "2");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict_untracked, does_not_blame_them_where_their_hosts_ran_on)
{
	wait_for_who_is_unseen(44, 60);
	expect(CW_CLASS_UNKNOWN, "progress_untracked", "", "2");
}

/* As soon as one of them is seen to have come out of it, that is no excuse. */
Test(verdict_untracked, blames_a_rank_that_cannot_be_held_up_there)
{
	wait_for_who_is_unseen(41, 41);
	b->comms[0]->members[1].untracked_to = 0;
	b->comms[0]->members[1].reached = b->comms[0]->members[1].completed = 41;
	b->ranks[0].host_wait = CW_HOST_WAIT_STORAGE;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "0", "2");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

/* Behind an op of another comm on the same stream. The progress of that op is unknown. */
Test(verdict_untracked, calls_no_device_stalled_that_may_be_inside_an_op_unseen)
{
	struct sb_comm *tp = sb_comm(b, "tp", 0, 2, 1, 40), *dp = sb_comm(b, "dp", 0, 2, 2, 7);

	for (uint32_t m = 0; m < 2; m++)
		sb_leave_out(tp, m, 41, 41, 20 * SB_S);
	sb_waits(dp, 1, 20 * SB_S);
	dp->members[0].entered = dp->members[0].returned = 8;
	dp->members[0].age_ns = 20 * SB_S;
	expect(CW_CLASS_UNKNOWN, "progress_untracked", "", "2");
	for (uint32_t m = 0; m < 2; m++)
		tp->members[m].untracked_to = 0, tp->members[m].completed = 41;
	expect(CW_CLASS_DEVICE_STALLED, "", "0", "2");
}

/* The same on one comm: a receive is posted, and its stream may be inside what was before it. */
Test(verdict_untracked, does_not_blame_a_receive_that_may_stand_behind_an_op_unseen)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 4, 1, 40);
	struct cw_op *op;

	for (uint32_t m = 0; m < 4; m++)
		sb_leave_out(c, m, 41, 41, 20 * SB_S);
	op = sb_call(c, 1, CW_OP_SEND, 20 * SB_S);
	op->peer = 0;
	op->p2p_seq = 5;
	op->progress = CW_PROGRESS_REACHED;
	c->members[1].p2p[0] = (struct cw_p2p_peer){ .peer = 0, .sends = 5 };
	op = sb_call(c, 0, CW_OP_RECV, 20 * SB_S);
	op->peer = 1;
	op->p2p_seq = 5;
	op->progress = CW_PROGRESS_ENQUEUED;
	op->flags |= CW_OPF_RETURNED;
	c->members[0].p2p[0] = (struct cw_p2p_peer){ .peer = 1, .recvs = 5 };
	for (uint32_t m = 0; m < 2; m++) {
		c->members[m].n_p2p = 1;
		c->members[m].known |= CW_KNOWN_P2P;
	}
	expect(CW_CLASS_UNKNOWN, "progress_untracked", "", "1");
	for (uint32_t m = 0; m < 4; m++)
		c->members[m].untracked_to = 0,
		c->members[m].completed = c->members[m].reached = 41;
	expect(CW_CLASS_DEVICE_STALLED, "", "0", "1");
}

Test(verdict_untracked, names_a_rank_that_is_stopped_all_the_same)
{
	wait_for_who_is_unseen(41, 41);
	b->ranks[0].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_NEVER_ENTERED, "stopped", "0", "2");
}
