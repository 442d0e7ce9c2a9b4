/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that wait for others, by kind of call. */
#include <criterion/criterion.h>

#include "analysis/stall/patience.h"
#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_waits, .init = verdict_setup, .fini = verdict_teardown);

/* ---- inside ---- */

Test(verdict_waits, blames_a_stopped_rank_inside_the_collective)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 20 * SB_S);
	b->ranks[6].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_IN_COLLECTIVE, "stopped", "6", "0-5,7");
}

/* Over a network its proxy thread sends what its device has handed over: seen on NCCL 2.29.7. */
Test(verdict_waits, blames_a_stopped_rank_whose_own_part_is_done)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 4, 1, 63);

	for (uint32_t m = 1; m < 4; m += 2) {
		sb_waits(c, m, 20 * SB_S);
		c->members[m].completed = 62;
	}
	b->ranks[2].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_IN_COLLECTIVE, "stopped", "2", "1,3");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect(strstr(said_text(&v.said),
			 "and has finished its own part of all_reduce #63 on world; ranks 1,3 "
			 "have been inside this call"),
		  "%s", said_text(&v.said));
}

Test(verdict_waits, does_not_say_in_collective_without_progress_words)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 20 * SB_S);
	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].known &= ~(unsigned)(CW_KNOWN_REACHED | CW_KNOWN_COMPLETED);
		c->members[m].returned = 41;
	}
	expect(CW_CLASS_UNKNOWN, "progress_unknown", "", "0-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict_waits, is_at_most_possible_when_completion_is_unknown)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 20 * SB_S);
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].known &= ~(unsigned)(CW_KNOWN_REACHED | CW_KNOWN_COMPLETED);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict_waits, sees_a_device_that_never_got_there)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 20 * SB_S);
	c->members[3].entered = c->members[3].returned = 42;
	expect(CW_CLASS_DEVICE_STALLED, "", "3", "0-2,4-7");
}

Test(verdict_waits, lowers_its_confidence_when_records_lost_ops)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	b->ranks[3].dropped = 1;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* ---- rooted ops ---- */

Test(verdict_waits, waits_for_the_root_of_a_broadcast_only)
{
	/* 0-3 wait for root 5; 6 and 7 have not come either, but no rank needs them yet. */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	c->usual.kind = CW_OP_BROADCAST;
	c->usual.root = 5;
	for (uint32_t m = 0; m < 4; m++)
		sb_waits(c, m, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "5", "0-3");
}

Test(verdict_waits, lets_the_root_of_a_reduce_wait_for_all)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	c->usual.kind = CW_OP_REDUCE;
	c->usual.root = 0;
	for (uint32_t m = 1; m < 7; m++)
		c->members[m].entered = c->members[m].returned = c->members[m].reached =
			c->members[m].completed = 42;
	sb_waits(c, 0, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "7", "0");
}

/* ---- cycles ---- */

Test(verdict_waits, finds_two_comms_used_in_opposite_order)
{
	/* 0 stands in a and owes b; 1 stands in b and owes a. */
	struct sb_comm *a = sb_comm(b, "a", 0, 2, 1, 10);
	struct sb_comm *c = sb_comm(b, "b", 0, 2, 1, 10);

	sb_waits(a, 0, 5 * SB_S);
	sb_waits(c, 1, 5 * SB_S);
	expect(CW_CLASS_DEADLOCK, "order", "0-1", "");
	cr_expect(v.is_proof);
	cr_assert_eq(v.n_chain, 2);
	cr_expect_eq(v.chain[0].rank, 0);
	cr_expect_eq(v.chain[0].waits_for, 1);
	cr_expect_eq(v.chain[1].waits_for, 0);
}

Test(verdict_waits, blames_the_rank_whose_order_differs_among_broadcasts)
{
	struct sb_comm *a = sb_comm(b, "a", 0, 8, 1, 10);
	struct sb_comm *c = sb_comm(b, "b", 0, 8, 1, 10);

	/* Only the root and the odd one are in the cycle: where the others wait shows the order. */
	a->usual.kind = c->usual.kind = CW_OP_BROADCAST;
	a->usual.redop = c->usual.redop = CW_REDOP_NONE;
	a->usual.root = c->usual.root = 0;
	sb_all_wait_but(a, 3, 5 * SB_S);
	sb_waits(c, 3, 5 * SB_S);
	expect(CW_CLASS_DEADLOCK, "order", "3", "0-2,4-7");
}

Test(verdict_waits, blames_the_rank_whose_order_differs)
{
	struct sb_comm *a = sb_comm(b, "a", 0, 8, 1, 10);
	struct sb_comm *c = sb_comm(b, "b", 0, 8, 1, 10);

	sb_all_wait_but(a, 6, 5 * SB_S);
	sb_waits(c, 6, 5 * SB_S);
	expect(CW_CLASS_DEADLOCK, "order", "6", "0-5,7");
}

Test(verdict_waits, takes_no_cycle_for_proven_that_was_never_seen_at_once)
{
	/* Rank 0 was looked at before rank 1 began to wait. */
	struct sb_comm *a = sb_comm(b, "a", 0, 2, 1, 10);
	struct sb_comm *c = sb_comm(b, "b", 0, 2, 1, 10);

	sb_waits(a, 0, 5 * SB_S);
	sb_waits(c, 1, SB_S / 2);
	b->ranks[0].sampled_ns = SB_NOW - SB_S;
	expect(CW_CLASS_DEADLOCK, "order", "0-1", "");
	cr_expect(!v.is_proof);
	cr_expect_neq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

/* ---- point to point ---- */

static void p2p(struct sb_comm *c, uint32_t member, unsigned kind, uint32_t peer, uint64_t seq)
{
	struct cw_op *op = sb_call(c, member, kind, 12 * SB_S);
	struct sb_member *m = &c->members[member];

	op->peer = (int32_t)peer;
	op->p2p_seq = seq;
	op->progress = CW_PROGRESS_REACHED;
	op->flags = CW_OPF_RETURNED;
	m->p2p[m->n_p2p++] = (struct cw_p2p_peer){ .peer = peer,
						   .sends = kind == CW_OP_SEND ? seq : 0,
						   .recvs = kind == CW_OP_RECV ? seq : 0 };
}

Test(verdict_waits, names_the_peer_that_posted_no_receive)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	p2p(c, 1, CW_OP_SEND, 2, 5);
	expect(CW_CLASS_P2P_UNMATCHED, "outside_nccl", "2", "1");
}

Test(verdict_waits, finds_a_send_and_a_receive_of_different_sizes)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	p2p(c, 1, CW_OP_SEND, 2, 5);
	p2p(c, 2, CW_OP_RECV, 1, 5);
	c->members[1].call.bytes = 4096;
	c->members[2].call.bytes = 8192;
	expect(CW_CLASS_P2P_UNMATCHED, "size", "1-2", "");
	cr_expect(v.is_proof);
}

Test(verdict_waits, follows_a_pipeline_to_its_silent_stage)
{
	/* 3 waits for 2, which waits for 1, which waits for 0. */
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	for (uint32_t m = 1; m < 4; m++)
		p2p(c, m, CW_OP_RECV, m - 1, 5);
	expect(CW_CLASS_P2P_UNMATCHED, "outside_nccl", "0", "1-3");
	cr_expect_eq(v.n_chain, 3);
}

Test(verdict_waits, finds_a_ring_of_receives)
{
	struct sb_comm *c = sb_comm(b, "ring", 0, 4, 1, 0);

	for (uint32_t m = 0; m < 4; m++)
		p2p(c, m, CW_OP_RECV, (m + 3) % 4, 1);
	expect(CW_CLASS_DEADLOCK, "order", "0-3", "");
	cr_expect_eq(v.n_chain, 4);
}

/*
 * Rank 0 is missing on tp, where 1 waits. In a group on pp 2 sends to 3, which has got it, and
 * receives from 1, which has not come to that. 3 waits for 2 on dp.
 */
static struct sb_comm *chain_through_a_group(uint64_t newest)
{
	struct sb_comm *tp = sb_comm(b, "tp", 0, 2, 1, 30);
	struct sb_comm *dp = sb_comm(b, "dp", 2, 2, 1, 30);
	struct sb_comm *pp = sb_comm(b, "pp", 0, 4, 1, 0);
	struct sb_member *m = &pp->members[2];

	sb_waits(tp, 1, 12 * SB_S);
	sb_waits(dp, 1, 12 * SB_S);
	p2p(pp, 2, CW_OP_SEND, 3, 5);
	pp->members[3].p2p[pp->members[3].n_p2p++] = (struct cw_p2p_peer){ .peer = 2, .recvs = 5 };
	m->call.flags |= CW_OPF_GROUPED;
	m->call.group_id = 7;
	m->newest = m->call;
	m->newest.kind = CW_OP_RECV;
	m->newest.peer = 1;
	m->newest.op_index = newest;
	m->p2p[m->n_p2p++] = (struct cw_p2p_peer){ .peer = 1, .recvs = 5 };
	return pp;
}

Test(verdict_waits, looks_at_all_ops_of_a_group)
{
	struct sb_comm *pp = chain_through_a_group(2);

	cr_assert_eq(pp->members[2].call.op_index, 1);
	b->ranks[0].host_wait = CW_HOST_WAIT_STORAGE;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "0", "1-3");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(verdict_waits, blames_nobody_for_a_group_it_knows_in_part)
{
	struct sb_comm *pp = chain_through_a_group(3);

	/* All known messages have come: that leaves the op without data. */
	pp->members[2].newest.peer = 3;
	pp->members[3].p2p[0].sends = 5;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "0", "1");
	cr_assert(v.wants_windows);
	cr_expect_eq(snap->comms[v.wanted[v.n_wanted - 1]].nranks, 4);
}

/* ---- init ---- */

Test(verdict_waits, says_who_is_missing_in_init)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 0);

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].state = CW_COMM_INIT;
		(void)sb_call(c, m, CW_OP_COMM_INIT, 130 * SB_S);
	}
	c->members[3].rank = CW_SNAP_NONE;
	expect(CW_CLASS_INIT_STUCK, "init", "3", "0-2,4-7");
	cr_expect_neq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(verdict_waits, says_that_all_are_inside_init)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 0);

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].state = CW_COMM_INIT;
		(void)sb_call(c, m, CW_OP_COMM_INIT, 130 * SB_S);
	}
	expect(CW_CLASS_INIT_STUCK, "init", "", "0-7");
}

Test(verdict_waits, names_the_rank_that_did_not_join_a_split)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 4);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 2)
			(void)sb_call(c, m, CW_OP_COMM_SPLIT, 130 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "split", "2", "0-1,3-7");
}

/* ---- sends and receives behind or beside others ---- */

static void judge_again(void)
{
	cw_verdict_fini(&v);
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
}

Test(verdict_waits, follows_a_receive_to_a_send_that_stands_behind_another_op)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 3, 1, 0);

	/* 1 waits for 0, has posted its send to 2 behind that, and we have fetched no window. */
	p2p(c, 1, CW_OP_RECV, 0, 5);
	c->members[1].p2p[c->members[1].n_p2p++] = (struct cw_p2p_peer){ .peer = 2, .sends = 5 };
	p2p(c, 2, CW_OP_RECV, 1, 5);
	judge();
	snap->comms[0].members[2].pending->enter_ns -= SB_S; /* it has waited longer */
	snap->comms[0].members[1].pending_count = 2;
	judge_again();
	cr_expect_eq(v.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s", said_text(&v.said));
	cr_expect_str_eq(sb_culprits(snap, &v), "0", "%s", said_text(&v.said));
	cr_expect_str_eq(sb_victims(snap, &v), "1-2", "%s", said_text(&v.said));
	/* A send of long ago is behind nothing. */
	snap->comms[0].members[1].pending_count = 1;
	judge_again();
	cr_expect_str_eq(sb_victims(snap, &v), "1", "%s", said_text(&v.said));
}

Test(verdict_waits, believes_newer_counters_before_an_older_window)
{
	struct cw_op sent = { .kind = CW_OP_SEND,
			      .peer = 2,
			      .p2p_seq = 5,
			      .op_index = 1,
			      .flags = CW_OPF_RETURNED,
			      .progress = CW_PROGRESS_ENQUEUED };
	struct sb_comm *c = sb_comm(b, "pp", 0, 3, 1, 1);

	/* When 1's window was read its send to 2 had not begun; now 1 is in the call behind it. */
	p2p(c, 1, CW_OP_RECV, 0, 5);
	c->members[1].p2p[c->members[1].n_p2p++] = (struct cw_p2p_peer){ .peer = 2, .sends = 5 };
	p2p(c, 2, CW_OP_RECV, 1, 5);
	judge();
	cr_assert_gt(snap->comms[0].members[1].pending->op_index, sent.op_index);
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 1, &sent, 1, 0, SB_NOW), 0);
	judge_again();
	cr_expect_str_eq(sb_culprits(snap, &v), "0", "%s", said_text(&v.said));
	cr_expect_str_eq(sb_victims(snap, &v), "1", "%s", said_text(&v.said));
	/* Behind the call it is in, it stands in the way. */
	sent.op_index = snap->comms[0].members[1].pending->op_index + 1;
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 1, &sent, 1, 0, SB_NOW), 0);
	judge_again();
	cr_expect_str_eq(sb_victims(snap, &v), "1-2", "%s", said_text(&v.said));
}

Test(verdict_waits, knows_that_sends_to_one_peer_come_in_order)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 2, 1, 0);

	/* We last saw 0 in its receive of the send before the one of 1. */
	p2p(c, 0, CW_OP_RECV, 1, 5);
	p2p(c, 1, CW_OP_SEND, 0, 6);
	judge();
	snap->comms[0].members[1].pending_count = 3;
	judge_again();
	cr_expect_neq(v.verdict_class, CW_CLASS_DEADLOCK, "%s", said_text(&v.said));
}

Test(verdict_waits, finds_different_sizes_within_a_group)
{
	struct cw_op group[2], sent = { .kind = CW_OP_SEND,
					.peer = 1,
					.p2p_seq = 5,
					.op_index = 9,
					.bytes = 4096,
					.progress = CW_PROGRESS_COMPLETED };
	struct sb_comm *c = sb_comm(b, "ring", 0, 3, 1, 0);
	struct cw_op *op;

	p2p(c, 1, CW_OP_SEND, 2, 5);
	op = &c->members[1].call;
	op->flags |= CW_OPF_GROUPED;
	op->group_id = 7;
	group[0] = group[1] = *op;
	group[1].kind = CW_OP_RECV;
	group[1].peer = 0;
	group[1].op_index++;
	group[1].bytes = 8192;
	c->members[1].p2p[0] = (struct cw_p2p_peer){ .peer = 0, .recvs = 5 };
	c->members[1].p2p[c->members[1].n_p2p++] = (struct cw_p2p_peer){ .peer = 2, .sends = 5 };
	c->members[0].p2p[c->members[0].n_p2p++] = (struct cw_p2p_peer){ .peer = 1, .sends = 5 };
	c->members[2].p2p[c->members[2].n_p2p++] = (struct cw_p2p_peer){ .peer = 1, .recvs = 5 };
	judge();
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 1, group, 2, 0, SB_NOW), 0);
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 0, &sent, 1, 0, SB_NOW), 0);
	judge_again();
	cr_expect_eq(v.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s", said_text(&v.said));
	cr_expect_eq(v.detail, CW_DETAIL_SIZE);
	cr_expect_str_eq(sb_culprits(snap, &v), "0-1", "%s", said_text(&v.said));
}

/* The window was read before 2 had received; since then it has nothing open there, and waits for 1.
 */
Test(verdict_waits, a_receive_that_is_over_by_the_counters_holds_up_nobody)
{
	struct sb_comm *c = sb_comm(b, "ring", 0, 3, 1, 9), *w = sb_comm(b, "world", 0, 3, 1, 41);
	struct cw_op received = { .kind = CW_OP_RECV,
				  .peer = 1,
				  .p2p_seq = 5,
				  .op_index = 9,
				  .flags = CW_OPF_RETURNED,
				  .progress = CW_PROGRESS_ENQUEUED };

	p2p(c, 1, CW_OP_SEND, 2, 5);
	c->members[2].p2p[c->members[2].n_p2p++] = (struct cw_p2p_peer){ .peer = 1, .recvs = 5 };
	sb_all_wait_but(w, 1, 12 * SB_S);
	judge();
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 2, &received, 1, 0, SB_NOW), 0);
	judge_again();
	cr_expect_neq(v.verdict_class, CW_CLASS_DEADLOCK, "%s", said_text(&v.said));
}

/* 1 sends to 2 and receives from it at once: one rank that is not seen, not two. */
Test(verdict_waits, counts_an_unseen_peer_once_however_many_ops_wait_for_it)
{
	struct sb_comm *c = sb_comm(b, "ring", 0, 3, 1, 0);
	struct cw_op group[2];
	struct cw_op *op;

	p2p(c, 1, CW_OP_SEND, 2, 5);
	op = &c->members[1].call;
	op->flags |= CW_OPF_GROUPED;
	op->group_id = 7;
	group[0] = group[1] = *op;
	group[1].kind = CW_OP_RECV;
	group[1].op_index++;
	c->members[1].p2p[0] = (struct cw_p2p_peer){ .peer = 2, .sends = 5, .recvs = 5 };
	c->members[2].rank = CW_SNAP_NONE;
	judge();
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 1, group, 2, 0, SB_NOW), 0);
	judge_again();
	cr_expect(strstr(said_text(&v.said), "1 of its ranks is not visible"), "%s",
		  said_text(&v.said));
}

/* 1 sends these sizes to 0 and to 2, and both expect 8192 bytes. */
static void exchange(struct sb_comm *c, uint64_t to_0, uint64_t to_2)
{
	struct cw_op group[2];
	struct cw_op *op;

	p2p(c, 1, CW_OP_SEND, 0, 5);
	p2p(c, 0, CW_OP_RECV, 1, 5);
	p2p(c, 2, CW_OP_RECV, 1, 5);
	c->members[0].call.bytes = c->members[2].call.bytes = 8192;
	op = &c->members[1].call;
	op->flags |= CW_OPF_GROUPED;
	op->group_id = 7;
	op->bytes = to_0;
	group[0] = group[1] = *op;
	group[1].peer = 2;
	group[1].op_index++;
	group[1].bytes = to_2;
	c->members[1].p2p[c->members[1].n_p2p++] = (struct cw_p2p_peer){ .peer = 2, .sends = 5 };
	judge();
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 1, group, 2, 0, SB_NOW), 0);
	judge_again();
	cr_expect_eq(v.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s", said_text(&v.said));
	cr_expect_eq(v.detail, CW_DETAIL_SIZE, "%s", said_text(&v.said));
}

Test(verdict_waits, names_the_one_whose_sizes_fit_nobody)
{
	exchange(sb_comm(b, "experts", 0, 3, 1, 0), 4096, 4096);
	cr_expect_str_eq(sb_culprits(snap, &v), "1", "%s", said_text(&v.said));
	cr_expect_not_null(strstr(said_text(&v.said),
				  "disagrees with several ranks, rank 0 among them, "
				  "on the sizes of their messages on experts"),
			   "%s", said_text(&v.said));
}

Test(verdict_waits, names_both_where_one_size_does_not_fit)
{
	exchange(sb_comm(b, "experts", 0, 3, 1, 0), 8192, 4096);
	cr_expect_str_eq(sb_culprits(snap, &v), "1-2", "%s", said_text(&v.said));
}

Test(verdict_waits, finds_the_stuck_device_behind_a_host_that_waits_for_it)
{
	struct sb_comm *side = sb_comm(b, "side", 0, 8, 1, 20);
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	/* 3 has not entered the call on world, because its device does not come to that on side. */
	sb_all_wait_but(c, 3, 30 * SB_S);
	sb_waits(side, 2, 20 * SB_S);
	side->members[3].entered = side->members[3].returned = 21;
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_DEVICE_STALLED, "%s", said_text(&v.said));
	cr_expect_str_eq(sb_culprits(snap, &v), "3", "%s", said_text(&v.said));
	cr_expect_str_eq(snap->comms[v.comm].name, "side");
}

Test(verdict_waits, takes_a_lost_node_for_missing_in_what_it_had_reached)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 40 * SB_S);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	expect(CW_CLASS_NODE_UNREACHABLE, "", "4-7", "0-3");
}

/* Its receive was there at the node's last digest, and the send has not got through since. */
Test(verdict_waits, takes_a_lost_node_for_missing_in_a_receive_it_had_reached)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 8, 1, 0);

	p2p(c, 1, CW_OP_SEND, 5, 5);
	p2p(c, 5, CW_OP_RECV, 1, 5);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	expect(CW_CLASS_NODE_UNREACHABLE, "", "4-7", "1");
}

/* A partition: the ranks of the other side were at work for long after their daemon was lost. */
Test(verdict_waits, does_not_blame_a_node_whose_ranks_outlived_its_daemon)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 2, 12 * SB_S);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	for (uint32_t m = 4; m < 8; m++)
		c->members[m].entered = c->members[m].returned = 20;
	judge();
	snap->nodes[1].last_digest_ns = SB_NOW - 70 * SB_S;
	for (uint32_t m = 0; m < 4; m++)
		snap->comms[0].members[m].progress_ns = SB_NOW - 12 * SB_S;
	snap->ranks[2].host_activity_ns = SB_NOW - 12 * SB_S;
	snap->thresholds.no_progress_after_ns = 5 * SB_S;
	judge_again();
	cr_expect_eq(v.verdict_class, CW_CLASS_NEVER_ENTERED, "%s", said_text(&v.said));
	cr_expect_str_eq(sb_culprits(snap, &v), "2", "%s", said_text(&v.said));
}

Test(verdict_waits, blames_a_lost_node_whose_ranks_did_nothing_since)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 12 * SB_S);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	for (uint32_t m = 4; m < 8; m++)
		c->members[m].entered = c->members[m].returned = 40;
	judge();
	snap->nodes[1].last_digest_ns = SB_NOW - 13 * SB_S;
	for (uint32_t m = 0; m < 4; m++)
		snap->comms[0].members[m].progress_ns = SB_NOW - 12 * SB_S;
	judge_again();
	cr_expect_eq(v.verdict_class, CW_CLASS_NODE_UNREACHABLE, "%s", said_text(&v.said));
	cr_expect_str_eq(sb_culprits(snap, &v), "4-7", "%s", said_text(&v.said));
}

/* Both are missing at one call, for as long: neither age nor patience tells them apart. */
Test(verdict_waits, blames_the_stopped_rank_it_sees_not_the_node_it_does_not)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 7 * SB_S);
	for (uint32_t m = 4; m < 8; m++)
		c->members[m].entered = c->members[m].returned = 20;
	b->node_state[1] = CW_NODE_UNREACHABLE;
	b->ranks[3].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_NEVER_ENTERED, "stopped", "3", "0-2");
	cr_assert_eq(v.n_alternatives, 1);
	cr_expect_eq(v.alternatives[0].verdict_class, CW_CLASS_NODE_UNREACHABLE);
	cr_expect_eq(v.alternatives[0].n_culprits, 4);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* Its wait is a moment younger than that for the node, and its patience longer. */
Test(verdict_waits, blames_the_stopped_rank_though_the_node_was_waited_for_first)
{
	struct sb_comm *tp = sb_comm(b, "tp", 2, 2, 1, 41);
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 30 * SB_S);
	c->members[2].entered = c->members[2].returned = c->members[2].reached = 41;
	for (uint32_t m = 4; m < 8; m++)
		c->members[m].entered = c->members[m].returned = c->members[m].reached = 41;
	sb_waits(tp, 0, 29 * SB_S);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	b->ranks[3].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_NEVER_ENTERED, "stopped", "3", "0-2");
	cr_assert_eq(v.n_alternatives, 1);
	cr_expect_eq(v.alternatives[0].verdict_class, CW_CLASS_NODE_UNREACHABLE);
}

/* It was stopped long after the node was lost, and another rank came later: an unrelated matter. */
Test(verdict_waits, blames_the_lost_node_where_a_rank_is_stopped_much_later)
{
	struct sb_comm *even = sb_comm(b, "even", 0, 4, 2, 41);
	struct sb_comm *pair = sb_comm(b, "pair", 2, 2, 1, 41);

	sb_waits(even, 0, 60 * SB_S);
	sb_waits(pair, 0, 12 * SB_S);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	b->ranks[3].liveness = CW_LIVE_STOPPED;
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_NODE_UNREACHABLE, "%s", said_text(&v.said));
}

/* The alert on a node needs no patience of its own: we sample the reachable ranks first. */
Test(verdict_waits, blames_no_lost_node_before_it_has_looked_at_the_others)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 4 * SB_S);
	for (uint32_t m = 4; m < 8; m++)
		c->members[m].entered = c->members[m].returned = c->members[m].reached = 41;
	b->node_state[1] = CW_NODE_UNREACHABLE;
	b->ranks[3].sampled_ns = SB_NOW - 5 * SB_S;
	judge();
	snap->nodes[1].last_digest_ns = SB_NOW - 13 * SB_S;
	cr_assert_eq(v.verdict_class, CW_CLASS_NODE_UNREACHABLE, "%s", said_text(&v.said));
	cr_expect_not(cw_patience(snap, &v, NULL).may_page);
	snap->ranks[3].sampled_ns = SB_NOW - 3 * SB_S;
	cr_expect(cw_patience(snap, &v, NULL).may_page);
	/* Nor does the alert wait for that without limit. */
	snap->ranks[3].sampled_ns = SB_NOW - 5 * SB_S;
	snap->now_ns += 6 * SB_S;
	cr_expect(cw_patience(snap, &v, NULL).may_page);
}

/* ---- calls that a record has lost ---- */

/*
 * All hosts are far ahead. All devices are in call 42, but that of rank 3, which has not come to
 * it. The records of all members from `first` on have lost that call.
 */
static void draft_lost(uint32_t first)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 20 * SB_S);
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].entered = c->members[m].returned = 20000;
	c->members[3].reached = 41;
	snap = sb_snapshot(b);
	for (uint32_t m = first; m < 8; m++) {
		struct cw_op *op = snap->comms[0].members[m].pending;

		*op = (struct cw_op){ .kind = CW_OP_NONE,
				      .dtype = CW_DTYPE_NONE,
				      .redop = CW_REDOP_NONE,
				      .progress = op->progress,
				      .flags = CW_OPF_RETURNED,
				      .root = CW_PEER_NONE,
				      .peer = CW_PEER_NONE,
				      .coll_seq = op->coll_seq,
				      .op_index = op->op_index,
				      .enter_ns = op->enter_ns,
				      .return_ns = op->enter_ns };
	}
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
}

static void expect_the_device_of_rank_3(void)
{
	cr_expect_eq(v.verdict_class, CW_CLASS_DEVICE_STALLED, "%s", said_text(&v.said));
	cr_expect_str_eq(sb_culprits(snap, &v), "3", "%s", said_text(&v.said));
	cr_expect_str_eq(sb_victims(snap, &v), "0-2,4-7", "%s", said_text(&v.said));
	cr_expect_eq(v.coll_seq, 42);
	cr_assert_gt(v.n_sides, 0);
	cr_expect(v.sides[0].has_op);
	cr_expect_eq(v.sides[0].op.coll_seq, 42);
}

Test(verdict_waits, a_call_that_all_records_have_lost_is_waited_in_like_any_other)
{
	draft_lost(8);
	expect_the_device_of_rank_3();
	cr_expect_eq(v.sides[0].op.kind, CW_OP_ALL_REDUCE);
	verdict_teardown();
	verdict_setup();
	draft_lost(0);
	expect_the_device_of_rank_3();
	cr_expect_eq(v.sides[0].op.kind, CW_OP_NONE);
	cr_expect(strstr(said_text(&v.said), "collective #42 on world"), "%s", said_text(&v.said));
}

Test(verdict_waits, a_lost_call_has_kind_and_size_of_another_ranks_record)
{
	draft_lost(1);
	expect_the_device_of_rank_3();
	cr_expect_eq(v.sides[0].op.kind, CW_OP_ALL_REDUCE);
	cr_expect_gt(v.sides[0].op.count, 0);
	for (uint32_t i = 0; i < v.n_chain; i++)
		cr_expect_eq(v.chain[i].op.kind, CW_OP_ALL_REDUCE);
}

/* Its kind is not known: it may not differ from the others' calls. */
Test(verdict_waits, a_lost_call_is_no_mismatch)
{
	draft_lost(4);
	expect_the_device_of_rank_3();
}
