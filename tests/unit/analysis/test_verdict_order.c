/* SPDX-License-Identifier: Apache-2.0 */
/* Wait cycles: the rank with the odd order is the culprit. */
#include <criterion/criterion.h>

#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_order, .init = verdict_setup, .fini = verdict_teardown);

static void expect_proof(unsigned verdict_class, const char *detail, const char *culprits,
			 const char *victims)
{
	expect(verdict_class, detail, culprits, victims);
	cr_expect(v.is_proof);
}

/* Pairs, then all ranks: rank 3 goes to all first, and its partner waits in the pair. */
static void pairs_and_world(uint64_t parent_id)
{
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 10);
	struct sb_comm *dp = NULL;

	for (uint32_t first = 0; first < 4; first++) {
		dp = sb_comm(b, "dp", first, 2, 4, first == 3 ? 10 : 11);
		dp->parent_id = parent_id;
		dp->split_ordinal = 2;
	}
	sb_waits(dp, 1, 5 * SB_S);
	for (uint32_t r = 0; r < 7; r++)
		sb_waits(world, r, 5 * SB_S);
}

Test(verdict_order, asks_the_other_groups_which_order_is_usual)
{
	pairs_and_world(77);
	expect_proof(CW_CLASS_DEADLOCK, "order", "3", "0-2,4-7");
}

Test(verdict_order, blames_both_where_no_other_group_is_known_to_be_of_the_kind)
{
	pairs_and_world(0);
	expect_proof(CW_CLASS_DEADLOCK, "order", "3,7", "0-2,4-6");
}

/* Four pass something on around a ring, then all of them meet; rank 2 has received nothing. */
static void ring_with_a_hole(void)
{
	struct sb_comm *ring = sb_comm(b, "ring", 0, 4, 1, 0);
	struct sb_comm *world = sb_comm(b, "world", 0, 4, 1, 10);
	struct cw_op *send = sb_call(ring, 1, CW_OP_SEND, 5 * SB_S);

	send->peer = 2;
	send->p2p_seq = 5;
	send->progress = CW_PROGRESS_REACHED;
	send->flags = CW_OPF_RETURNED;
	sb_all_wait_but(world, 1, 5 * SB_S);
	for (uint32_t m = 0; m < 4; m++) {
		ring->members[m].sends = 5;
		ring->members[m].recvs = m == 2 ? 4 : 5;
	}
}

Test(verdict_order, names_the_peer_that_went_on_without_its_receive)
{
	ring_with_a_hole();
	expect_proof(CW_CLASS_P2P_UNMATCHED, "not_posted", "2", "0-1,3");
}

Test(verdict_order, takes_a_missing_receive_in_an_uneven_pattern_for_a_cycle)
{
	ring_with_a_hole();
	b->comms[0]->members[3].sends = 1;
	expect_proof(CW_CLASS_DEADLOCK, "order", "1-2", "0,3");
	/* The receive may never come: then it was not the order that was wrong. */
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* Two wait for rank 2 in sends, and it for them in a collective that is theirs, too. */
Test(verdict_order, names_the_one_rank_that_all_others_of_a_cycle_wait_for)
{
	struct sb_comm *c = sb_comm(b, "tp", 0, 4, 1, 10);

	for (uint32_t m = 1; m < 4; m += 2) {
		struct cw_op *send = sb_call(c, m, CW_OP_SEND, 5 * SB_S);

		send->peer = 2;
		send->p2p_seq = 5;
		send->progress = CW_PROGRESS_REACHED;
		send->flags = CW_OPF_RETURNED;
	}
	sb_waits(c, 2, 5 * SB_S);
	expect(CW_CLASS_DEADLOCK, "order", "2", "1,3");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

Test(verdict_order, knows_no_middle_of_a_ring)
{
	struct sb_comm *c = sb_comm(b, "ring", 0, 4, 1, 10);

	for (uint32_t m = 0; m < 4; m++) {
		struct cw_op *send = sb_call(c, m, CW_OP_SEND, 5 * SB_S);

		send->peer = (int32_t)(m + 1) % 4;
		send->p2p_seq = 5;
		send->progress = CW_PROGRESS_REACHED;
		send->flags = CW_OPF_RETURNED;
	}
	expect(CW_CLASS_DEADLOCK, "order", "0-3", "");
}

/*
 * All gather to rank 0, then reduce; rank 2 reduced first. The leaves have left the gather, so most
 * wait where rank 2 does. It made its gather `gather_ns` ago.
 */
static void gather_and_reduce(int64_t gather_ns)
{
	struct sb_comm *gather = sb_comm(b, "gather", 0, 4, 1, 10);
	struct sb_comm *reduce = sb_comm(b, "reduce", 0, 4, 1, 10);

	gather->usual.kind = CW_OP_GATHER;
	gather->usual.redop = CW_REDOP_NONE;
	gather->usual.root = 0;
	for (uint32_t m = 0; m < 4; m++) {
		sb_waits(gather, m, m == 2 ? gather_ns : 5 * SB_S);
		sb_waits(reduce, m, 5 * SB_S - 1000);
		gather->members[m].has_window = reduce->members[m].has_window = true;
		if (m == 1 || m == 3)
			gather->members[m].completed++;
	}
	gather->members[2].reached--;
	reduce->members[0].reached--;
}

Test(verdict_order, names_the_rank_whose_order_is_not_the_usual_one)
{
	gather_and_reduce(5 * SB_S - 2000);
	expect(CW_CLASS_DEADLOCK, "order", "2", "0-1,3");
}

/* Without another order there is no cycle, and of all others it is known not to be theirs. */
Test(verdict_order, names_the_only_rank_whose_order_is_not_known)
{
	gather_and_reduce(5 * SB_S - 1000);
	expect(CW_CLASS_DEADLOCK, "order", "2", "0-1,3");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/*
 * Rank 2 has not come to the gather. Rank 0, its root, has more enqueued behind it, and has
 * finished its sends on another stream. Rank 1 has left the gather and waits in the next call of
 * the first comm. On the other stream it waits for rank 2's send. Each waits for the other on one
 * stream, but neither wait causes the other.
 */
Test(verdict_order, takes_no_two_streams_for_a_cycle)
{
	struct sb_comm *first = sb_comm(b, "main", 0, 3, 1, 10);
	struct sb_comm *other = sb_comm(b, "outer", 0, 3, 1, 10);
	struct cw_op *gather = sb_odd(first, 0, 11), *recv;

	gather->kind = CW_OP_GATHER;
	gather->redop = CW_REDOP_NONE;
	gather->root = 0;
	*sb_odd(first, 1, 11) = *gather;
	first->members[1].completed = first->members[1].reached = 11;
	first->members[1].entered = first->members[1].returned = 11;
	sb_waits(first, 0, 12 * SB_S);
	first->members[0].entered = first->members[0].returned = 12;
	sb_waits(first, 1, 12 * SB_S);
	sb_waits(other, 0, 12 * SB_S);
	recv = sb_call(other, 1, CW_OP_RECV, 12 * SB_S);
	recv->peer = 2;
	recv->p2p_seq = 5;
	recv->progress = CW_PROGRESS_REACHED;
	recv->flags = CW_OPF_RETURNED;
	other->members[1].entered = other->members[1].returned = 11;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "2", "0-1");
}
