/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and histories that contradict each other: how long a proof has to stand. */
#include <criterion/criterion.h>

#include "record/record_layout.h"
#include "tests/support/snapshot/stall_job.h"

TestSuite(stall_proofs, .init = stall_job_setup, .fini = stall_job_teardown);

Test(stall_proofs, alerts_on_a_proof_after_three_seconds)
{
	stall_job_fault();
	j.wrong_count = 7;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 60 * SB_S), 3 * SB_S);
	cr_expect_eq(j.verdict_class, CW_CLASS_MISMATCH);
}

Test(stall_proofs, are_told_when_serving_and_who_is_idle_is_not)
{
	j.policy = CW_POLICY_SERVING;
	stall_job_fault();
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 9000 * SB_S), -1);
	j.wrong_count = 7;
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 3 * SB_S), -1);
}

Test(stall_proofs, wants_windows_of_differing_histories_at_once)
{
	struct cw_snapshot *snap;
	struct sb *b;

	stall_job_fault();
	b = stall_job_builder();
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < j.n_ranks; m++) {
		snap->comms[0].members[m].known |= CW_KNOWN_HASH;
		snap->comms[0].members[m].checkpoints[0] =
			(struct cw_checkpoint){ .coll_seq = 64, .hash = m == 5 ? 1 : 2 };
	}
	stall_job_evaluate(b, snap);
	cr_expect_eq(j.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_eq(j.d.phase, CW_STALL_SUSPECT, "phase %u", j.d.phase);
	cr_expect(j.d.want_windows);
}

/* Rank 5 has another history; with its call known or not, to be seen at this look or not. */
static void look_at_histories(uint64_t seq, bool can_compare, bool knows_call)
{
	struct cw_snapshot *snap;
	struct sb *b = stall_job_builder();

	if (knows_call) {
		for (uint32_t m = 0; m < j.n_ranks; m++)
			b->comms[0]->members[m].has_window = true;
		sb_odd(b->comms[0], 5, j.done - 2)->redop = CW_REDOP_MAX;
	}
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < j.n_ranks; m++) {
		snap->comms[0].members[m].known &= ~(unsigned)CW_KNOWN_HASH;
		snap->comms[0].members[m].checkpoints[0] =
			(struct cw_checkpoint){ .coll_seq = can_compare ? seq : seq + m,
						.hash = m == 5 ? 1 : 2 };
	}
	snap->comms[0].agreed_seq = j.done - 8;
	snap->comms[0].differ_seq = j.done;
	stall_job_evaluate(b, snap);
}

Test(stall_proofs, alerts_3_s_after_histories_were_first_seen_to_differ)
{
	struct cw_verdict_key key;

	look_at_histories(64, true, false);
	cr_expect_eq(j.d.phase, CW_STALL_SUSPECT);
	key = j.d.key;
	/* Points to compare are not there at every look. */
	j.now_ns += SB_S;
	look_at_histories(128, false, false);
	cr_expect_eq(j.verdict_class, CW_CLASS_HEALTHY);
	j.now_ns += SB_S;
	look_at_histories(192, true, true);
	cr_expect_eq(j.d.phase, CW_STALL_SUSPECT);
	cr_expect(cw_verdict_key_is_same(&j.d.key, &key), "the call is named: another matter");
	j.now_ns += SB_S;
	look_at_histories(256, true, true);
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	cr_expect(cw_verdict_key_is_same(&j.d.key, &key));
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(stall_proofs, waits_a_moment_for_the_call_that_differs)
{
	for (unsigned i = 0; i <= 3; i++) {
		look_at_histories(64, true, false);
		cr_assert_neq(j.d.phase, CW_STALL_HANG, "after %u s", i);
		j.now_ns += SB_S;
	}
	look_at_histories(64, true, false);
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
}

/* Rank 5 called something else two calls ago; all stand in the newest one for so long, 0 = do not.
 */
static void look_at_displaced(int64_t for_ns)
{
	struct sb *b = stall_job_builder();
	struct sb_comm *c = b->comms[0];

	sb_odd(c, 5, j.done - 2)->kind = CW_OP_BROADCAST;
	for (uint32_t m = 0; m < j.n_ranks; m++) {
		c->members[m].has_window = true;
		c->members[m].interval_ns = SB_S / 10;
	}
	if (for_ns)
		sb_all_wait_but(c, SB_MAX_RANKS, for_ns);
	stall_job_evaluate(b, sb_snapshot(b));
}

Test(stall_proofs, a_wait_because_of_known_wrong_data_is_proven_three_seconds_after_it_began)
{
	for (unsigned i = 0; i < 5; i++) {
		look_at_displaced(0);
		j.now_ns += SB_S;
	}
	cr_assert_eq(j.d.phase, CW_STALL_HANG);
	cr_expect(!j.d.key.is_waited);
	look_at_displaced(5 * SB_S / 2);
	cr_expect(j.d.key.is_waited);
	cr_expect_neq(j.d.phase, CW_STALL_HANG, "it has only just begun");
	j.now_ns += SB_S / 2;
	look_at_displaced(3 * SB_S);
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	cr_expect_eq(j.d.hang, CW_HANG_PROVEN);
}

Test(stall_proofs, wrong_data_does_not_resolve)
{
	for (unsigned i = 0; i < 5; i++) {
		look_at_histories(64, true, false);
		j.now_ns += SB_S;
	}
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	for (unsigned i = 0; i < 200; i++) {
		look_at_histories(128, false, false);
		cr_assert_not(j.d.resolved_key.is_set);
		j.now_ns += SB_S;
	}
}

/* Rank 1 sent more to rank 2 than that received, or of another size; no rank waits. */
static void look_at_messages(uint64_t recvs, uint64_t recv_hash, uint32_t state)
{
	struct sb *b = stall_job_builder();
	struct sb_member *m = b->comms[0]->members;

	m[1].p2p[m[1].n_p2p++] = (struct cw_p2p_peer){ .peer = 2, .sends = 8, .send_hash = 7 };
	m[2].p2p[m[2].n_p2p++] =
		(struct cw_p2p_peer){ .peer = 1, .recvs = recvs, .recv_hash = recv_hash };
	for (uint32_t i = 0; i < j.n_ranks; i++)
		m[i].state = state;
	stall_job_evaluate(b, sb_snapshot(b));
}

Test(stall_proofs, pages_for_a_message_of_another_size_after_three_seconds)
{
	for (unsigned i = 0; i < 3; i++) {
		look_at_messages(8, 9, CW_COMM_READY);
		cr_expect_neq(j.d.phase, CW_STALL_HANG);
		j.now_ns += SB_S;
	}
	look_at_messages(8, 9, CW_COMM_READY);
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	cr_expect_eq(j.verdict_class, CW_CLASS_P2P_UNMATCHED);
	cr_expect_eq(j.d.hang, CW_HANG_NONE);
}

Test(stall_proofs, forgets_a_message_that_was_seen_once_to_be_of_another_size)
{
	look_at_messages(8, 9, CW_COMM_READY);
	for (unsigned i = 0; i < 40; i++) {
		j.now_ns += SB_S;
		look_at_messages(8, 7, CW_COMM_READY);
		cr_assert_neq(j.d.phase, CW_STALL_HANG);
	}
}

Test(stall_proofs, notes_a_message_that_was_never_received_and_wakes_nobody)
{
	for (unsigned i = 0; i < 600; i++) {
		look_at_messages(7, 5, CW_COMM_DESTROYED);
		cr_assert_neq(j.d.phase, CW_STALL_HANG);
		cr_assert_not(j.d.resolved_key.is_set);
		if (i >= 8)
			cr_assert(j.d.is_noticed);
		j.now_ns += SB_S;
	}
	cr_expect_eq(j.d.hang, CW_HANG_NONE);
}

Test(stall_proofs, asks_for_windows_of_uneven_messages_now_and_then)
{
	unsigned asked = 0;

	for (unsigned i = 0; i < 100; i++) {
		look_at_messages(7, 5, CW_COMM_READY);
		cr_assert_eq(j.d.phase, CW_STALL_QUIET);
		asked += j.d.want_windows;
		j.now_ns += SB_S;
	}
	cr_expect_eq(asked, 10);
}

/* Two calls that one rank puts into a group and the others do not. */
static void look_at_grouping(void)
{
	struct cw_snapshot *snap;
	struct sb *b = stall_job_builder();

	for (uint32_t m = 0; m < j.n_ranks; m++)
		b->comms[0]->members[m].has_window = true;
	sb_odd(b->comms[0], 5, j.done - 1)->count = 5;
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < j.n_ranks; m++)
		snap->comms[0].members[m].known &= ~(unsigned)CW_KNOWN_HASH;
	for (uint32_t i = 0; i < snap->comms[0].members[5].n_window; i++) {
		struct cw_op *op = &snap->comms[0].members[5].window[i];

		if (op->coll_seq >= j.done - 1) {
			op->flags |= CW_OPF_GROUPED;
			op->group_id = 9;
		}
	}
	stall_job_evaluate(b, snap);
}

Test(stall_proofs, another_grouping_that_nobody_waits_for_never_alerts)
{
	for (unsigned i = 0; i < 600; i++) {
		look_at_grouping();
		cr_assert_eq(j.verdict_class, CW_CLASS_MISMATCH);
		cr_assert_neq(j.d.phase, CW_STALL_HANG, "after %u s", i);
		j.now_ns += SB_S;
	}
}

/*
 * Rank 3 waits for the others on another communicator, they for it: a cycle, once all have been
 * seen in it at the same time. Returns when the next look is due, from this one.
 */
static bool are_calls_at_hand;

static int64_t look_at_cycle(bool is_seen_at_once)
{
	struct sb *b = stall_job_builder();
	struct sb_comm *side = sb_comm(b, "side", 0, j.n_ranks, 1, 10);
	struct cw_snapshot *snap;

	for (uint32_t m = 0; m < j.n_ranks; m++)
		b->comms[0]->members[m].has_window = side->members[m].has_window =
			are_calls_at_hand;

	sb_waits(side, 3, j.now_ns - j.fault_ns);
	snap = sb_snapshot(b);
	for (uint32_t i = 0; i < snap->n_nodes; i++)
		snap->nodes[i].last_digest_ns = j.now_ns;
	for (uint32_t m = 0; m < j.n_ranks; m++)
		snap->comms[1].members[m].progress_ns = SB_NOW - (j.now_ns - j.fault_ns);
	if (!is_seen_at_once)
		snap->ranks[3].sampled_ns = SB_NOW - (j.now_ns - j.fault_ns);
	stall_job_evaluate(b, snap);
	cr_assert_eq(j.verdict_class, CW_CLASS_DEADLOCK);
	return j.d.next_ns - j.now_ns;
}

Test(stall_proofs, looks_for_the_digest_that_proves_a_cycle)
{
	stall_job_fault();
	j.now_ns += SB_S;
	cr_expect_leq(look_at_cycle(false), SB_S / 4);
	j.now_ns += SB_S / 4;
	cr_expect_gt(look_at_cycle(true), SB_S / 4, "it is a proof, and stands for a while");
	j.now_ns += 3 * SB_S;
	(void)look_at_cycle(true);
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
}

Test(stall_proofs, looks_no_more_often_for_a_digest_that_does_not_come)
{
	stall_job_fault();
	j.now_ns += 6 * SB_S;
	cr_expect_gt(look_at_cycle(false), SB_S / 4);
}

static int64_t unproven_cycle_pages_after(void)
{
	for (int64_t ns = 0; ns < 600 * SB_S; ns += SB_S) {
		(void)look_at_cycle(false);
		if (j.d.phase == CW_STALL_HANG)
			return ns;
		j.now_ns += SB_S;
	}
	return -1;
}

Test(stall_proofs, gives_a_cycle_of_guesses_as_long_as_words_that_do_not_move)
{
	int64_t seen_ns;

	are_calls_at_hand = true;
	stall_job_fault();
	seen_ns = unproven_cycle_pages_after();
	cr_expect_gt(seen_ns, 0);
	cr_expect_lt(seen_ns, 30 * SB_S);
	stall_job_teardown();
	stall_job_setup();
	are_calls_at_hand = false;
	stall_job_fault();
	seen_ns = unproven_cycle_pages_after();
	cr_expect_eq(seen_ns, 60 * SB_S, "after %ld s: %s", (long)(seen_ns / SB_S), j.d.why);
}
