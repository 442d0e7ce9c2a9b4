/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that do not fit, and hold up no rank. */
#include <criterion/criterion.h>
#include <string.h>

#include "model/signature.h"
#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

static struct sb_comm *c;

static void setup(void)
{
	verdict_setup();
	c = sb_comm(b, "pp", 0, 4, 1, 0);
}

TestSuite(verdict_messages, .init = setup, .fini = verdict_teardown);

static struct cw_p2p_peer *peer_of(uint32_t member, uint32_t peer)
{
	struct sb_member *m = &c->members[member];

	for (uint32_t i = 0; i < m->n_p2p; i++)
		if (m->p2p[i].peer == peer)
			return &m->p2p[i];
	m->p2p[m->n_p2p] = (struct cw_p2p_peer){ .peer = peer };
	return &m->p2p[m->n_p2p++];
}

static uint64_t add(uint64_t *count, uint64_t *hash, uint64_t bytes)
{
	*hash = cw_hash_commit(*count ? *hash : CW_HASH_INIT, cw_hash_mix64(bytes));
	return ++*count;
}

static void sends(uint32_t from, uint32_t to, uint64_t bytes)
{
	struct cw_p2p_peer *p = peer_of(from, to);

	(void)add(&p->sends, &p->send_hash, bytes);
}

static void receives(uint32_t to, uint32_t from, uint64_t bytes)
{
	struct cw_p2p_peer *p = peer_of(to, from);

	(void)add(&p->recvs, &p->recv_hash, bytes);
}

/* n messages of that size, whole. */
static void message(uint32_t from, uint32_t to, uint64_t bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		sends(from, to, bytes);
		receives(to, from, bytes);
	}
}

static void all_are(uint32_t state)
{
	for (uint32_t m = 0; m < 4; m++)
		c->members[m].state = state;
}

/* The member's last messages there: of one kind with one peer, numbered up to `last`. */
static void set_window(uint32_t member, unsigned kind, uint32_t peer, const uint64_t *bytes,
		       uint32_t n, uint64_t last)
{
	struct cw_op ops[8];

	for (uint32_t i = 0; i < n; i++)
		ops[i] = (struct cw_op){ .kind = (uint8_t)kind,
					 .dtype = CW_DTYPE_UINT8,
					 .peer = (int32_t)peer,
					 .root = CW_PEER_NONE,
					 .bytes = bytes[i],
					 .count = bytes[i],
					 .p2p_seq = last - n + 1 + i,
					 .op_index = 10 + i,
					 .flags = CW_OPF_RETURNED,
					 .progress = CW_PROGRESS_COMPLETED };
	cr_assert_eq(cw_snapshot_set_window(snap, 0, member, ops, n, 0, SB_NOW), 0);
}

static void judge_with_windows(void)
{
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
}

static void expect_quiet(void)
{
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_HEALTHY, "%s", said_text(&v.said));
}

Test(verdict_messages, tells_of_sizes_that_differ_by_the_histories_alone)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	receives(2, 1, 1024);
	message(1, 2, 4096, 3);
	expect(CW_CLASS_P2P_UNMATCHED, "size", "1-2", "");
	cr_expect(v.is_proof);
	cr_expect(cw_verdict_is_silent(&v));
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect_str_eq(
		said_text(&v.said),
		"the message sizes that rank 1 sent to rank 2 on pp differ from those that "
		"rank 2 received (11 messages). No rank waits because of this.");
}

Test(verdict_messages, has_nothing_against_messages_of_many_sizes)
{
	for (unsigned i = 1; i < 20; i++) {
		message(1, 2, 64 * i, 1);
		message(2, 1, 96 * i, 2);
	}
	expect_quiet();
}

Test(verdict_messages, compares_no_histories_that_moved_while_they_were_read)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	receives(2, 1, 1024);
	peer_of(2, 1)->recv_hash = 0;
	expect_quiet();
}

Test(verdict_messages, compares_no_histories_of_different_lengths)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 512);
	sends(2, 3, 512);
	receives(0, 3, 512);
	expect_quiet();
	cr_expect(v.messages_are_uneven, "windows may tell");
	cr_assert_eq(v.n_wanted, 1);
}

Test(verdict_messages, asks_for_nothing_where_all_that_was_sent_was_received)
{
	message(1, 2, 4096, 7);
	expect_quiet();
	cr_expect_not(v.messages_are_uneven);
	cr_expect_not(v.wants_windows);
}

Test(verdict_messages, finds_the_message_that_took_the_place_of_one_omitted)
{
	static const uint64_t sent[] = { 512, 4096, 512, 4096 }, taken[] = { 512, 4096, 4096 };

	message(1, 2, 512, 1);
	for (unsigned i = 1; i < 4; i++)
		sends(1, 2, sent[i]);
	for (unsigned i = 1; i < 3; i++)
		receives(2, 1, taken[i]);
	snap = sb_snapshot(b);
	set_window(1, CW_OP_SEND, 2, sent, 4, 4);
	set_window(2, CW_OP_RECV, 1, taken, 3, 3);
	judge_with_windows();
	cr_assert_eq(v.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s", said_text(&v.said));
	cr_expect(v.is_proof);
	cr_expect_str_eq(sb_culprits(snap, &v), "1-2");
	cr_expect_str_eq(said_text(&v.said),
			 "rank 1 sent 512 bytes to rank 2 on pp as message #3, but rank 2 "
			 "received 4096 bytes. No rank waits because of this.");
	cr_assert_eq(v.n_sides, 2);
	cr_expect_eq(v.sides[0].op.kind, CW_OP_SEND);
	cr_expect_eq(v.sides[1].op.kind, CW_OP_RECV);
}

Test(verdict_messages, takes_no_call_of_a_group_that_was_given_up)
{
	/* The second send of number 4 went out; the rank gave up the first. */
	static const uint64_t sent[] = { 4096, 512 }, taken[] = { 512 };
	struct cw_op ops[2];

	message(1, 2, 512, 4);
	sends(1, 2, 64);
	snap = sb_snapshot(b);
	for (unsigned i = 0; i < 2; i++)
		ops[i] = (struct cw_op){ .kind = CW_OP_SEND,
					 .peer = 2,
					 .root = CW_PEER_NONE,
					 .bytes = sent[i],
					 .p2p_seq = 4,
					 .op_index = 10 + i };
	cr_assert_eq(cw_snapshot_set_window(snap, 0, 1, ops, 2, 0, SB_NOW), 0);
	set_window(2, CW_OP_RECV, 1, taken, 1, 4);
	judge_with_windows();
	cr_expect_eq(v.verdict_class, CW_CLASS_HEALTHY, "%s", said_text(&v.said));
}

Test(verdict_messages, names_the_one_whose_sizes_differ_from_those_of_several)
{
	for (uint32_t m = 1; m < 4; m++) {
		sends(0, m, 4096);
		receives(m, 0, 1024);
	}
	expect(CW_CLASS_P2P_UNMATCHED, "size", "0", "");
}

Test(verdict_messages, says_nothing_of_a_pipeline_under_way)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	receives(3, 2, 4096);
	expect_quiet();
}

Test(verdict_messages, tells_of_a_receive_that_was_omitted_when_both_are_done)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	all_are(CW_COMM_DESTROYED);
	expect(CW_CLASS_P2P_UNMATCHED, "not_posted", "2", "");
	cr_expect_not(v.is_proof, "it raises no alert");
	cr_expect(cw_verdict_is_silent(&v));
	cr_expect_str_eq(
		said_text(&v.said),
		"rank 1 sent 8 messages to rank 2 on pp, but rank 2 received only 7. No rank "
		"waits because of this.");
}

Test(verdict_messages, tells_of_a_send_that_was_omitted_when_both_are_done)
{
	message(1, 2, 4096, 7);
	receives(2, 1, 4096);
	all_are(CW_COMM_FINALIZING);
	expect(CW_CLASS_P2P_UNMATCHED, "not_posted", "1", "");
	cr_expect_str_eq(
		said_text(&v.said),
		"rank 2 posted 8 receives from rank 1 on pp, but rank 1 sent only 7 messages. "
		"No rank waits because of this.");
}

Test(verdict_messages, waits_until_both_are_done)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	c->members[1].state = CW_COMM_DESTROYED;
	expect_quiet();
}

static void end_all(void)
{
	for (uint32_t r = 0; r < 4; r++) {
		b->ranks[r].liveness = CW_LIVE_EXITED;
		b->ranks[r].ended_ns = SB_NOW - 3 * SB_S;
		b->ranks[r].sampled_ns = SB_NOW;
	}
}

Test(verdict_messages, tells_of_it_when_both_have_ended)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	end_all();
	expect(CW_CLASS_P2P_UNMATCHED, "not_posted", "2", "");
}

/* As a node tells of a job's good end: all its ranks ended at once. */
Test(verdict_messages, tells_of_it_when_all_have_ended_together)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	end_all();
	for (uint32_t r = 0; r < 4; r++)
		b->ranks[r].flags |= CW_RANKF_SHUTDOWN;
	expect(CW_CLASS_P2P_UNMATCHED, "not_posted", "2", "");
}

Test(verdict_messages, has_not_read_all_of_a_record_before_its_rank_ended)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	end_all();
	b->ranks[2].sampled_ns = b->ranks[2].ended_ns - SB_S;
	expect_quiet();
}

Test(verdict_messages, says_nothing_of_what_a_failure_left_under_way)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	end_all();
	b->ranks[3].liveness = CW_LIVE_KILLED;
	b->ranks[3].term_signal = 9;
	judge();
	cr_expect_neq(v.verdict_class, CW_CLASS_P2P_UNMATCHED, "%s", said_text(&v.said));
}

Test(verdict_messages, says_nothing_of_what_was_given_up)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	all_are(CW_COMM_DESTROYED);
	c->members[0].state = CW_COMM_ABORTED;
	expect_quiet();
}

Test(verdict_messages, says_nothing_of_ranks_that_were_told_to_end)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	all_are(CW_COMM_DESTROYED);
	b->ranks[1].flags |= CW_RANKF_SHUTDOWN;
	expect_quiet();
}

Test(verdict_messages, compares_nothing_that_was_not_counted_whole)
{
	message(1, 2, 4096, 7);
	sends(1, 2, 4096);
	all_are(CW_COMM_DESTROYED);
	c->members[2].known &= ~(uint32_t)CW_KNOWN_P2P;
	expect_quiet();
}
