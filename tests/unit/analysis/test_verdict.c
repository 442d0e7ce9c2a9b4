/* SPDX-License-Identifier: Apache-2.0 */
/* The classes, and rank by rank what a missing one is held by. */
#include <criterion/criterion.h>
#include <string.h>

#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict, .init = verdict_setup, .fini = verdict_teardown);

Test(verdict, is_healthy_when_nobody_waits)
{
	(void)sb_comm(b, "world", 0, 8, 1, 41);
	expect(CW_CLASS_HEALTHY, "", "", "");
	cr_expect_not(cw_verdict_key(snap, &v).is_set);
}

Test(verdict, names_the_rank_that_never_entered)
{
	struct sb_comm *c = sb_comm(b, "tp_group", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect(!v.is_proof);
	cr_expect_eq(v.coll_seq, 42);
	cr_expect_eq(v.waiting_since_ns, SB_NOW - 12 * SB_S);
	cr_expect_str_eq(said_text(&v.said),
			 "rank 3 (node-a, pid 803) never reached all_reduce #42 on "
			 "tp_group. The other 7 ranks have been waiting for it "
			 "for 12 s.");
}

Test(verdict, follows_the_waiting_through_a_chain_of_comms)
{
	/* 0-3 wait for 3 in tp0; 3 waits for 7 in dp3; 4-6 wait for 7 in tp1; 7 sleeps. */
	struct sb_comm *tp0 = sb_comm(b, "tp0", 0, 4, 1, 10);
	struct sb_comm *tp1 = sb_comm(b, "tp1", 4, 4, 1, 10);
	struct sb_comm *dp = sb_comm(b, "dp3", 3, 2, 4, 5);

	sb_all_wait_but(tp0, 3, 11 * SB_S);
	sb_all_wait_but(tp1, 3, 12 * SB_S);
	sb_all_wait_but(dp, 1, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "7", "0-6");
	cr_assert_eq(v.n_chain, 2);
	cr_expect_eq(v.chain[0].waits_for, 3);
	cr_expect_eq(v.chain[1].rank, 3);
	cr_expect_eq(v.chain[1].waits_for, 7);
}

Test(verdict, names_a_dead_process)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 9;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(verdict, says_who_killed_a_process_where_the_kernel_does)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 9;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	b->ranks[5].cause = "killed by SIGKILL sent by python3 (pid 4242, uid 1000)";
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect_not_null(strstr(said_text(&v.said),
				  " was killed by SIGKILL sent by python3 (pid 4242, "
				  "uid 1000) before it could enter all_reduce #42 on "
				  "world. The other 7 ranks "),
			   "%s", said_text(&v.said));
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said),
				  "killed by SIGKILL sent by python3 "
				  "(pid 4242, uid 1000), 4.0 s ago; "),
			   "%s", said_text(&v.culprits[0].said));
}

Test(verdict, says_how_a_process_ended_where_the_kernel_does_not_say_by_whom)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 11;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect_not_null(strstr(said_text(&v.said),
				  " was killed by SIGSEGV before it could enter all_reduce #42 "),
			   "%s", said_text(&v.said));
}

Test(verdict, says_with_what_status_a_process_ended)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].exit_code = 3;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-4,6-7");
	cr_expect_not_null(strstr(said_text(&v.said),
				  " exited with status 3 before it could enter all_reduce #42 "),
			   "%s", said_text(&v.said));
}

Test(verdict, names_a_process_that_died_inside_the_call)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_GONE;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "gone", "5", "0-4,6-7");
	cr_expect(v.is_proof);
}

Test(verdict, finds_a_wrong_count)
{
	/* The rank with the smaller count completes its call and waits in the next one. */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	sb_odd(c, 6, 42)->count = 1000;
	c->members[6].completed = 42;
	sb_waits(c, 6, 2 * SB_S);
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	expect(CW_CLASS_MISMATCH, "count", "6", "0-5,7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect_eq(v.coll_seq, 42);
	cr_expect_eq(v.n_sides, 2);
}

Test(verdict, says_in_collective_when_nobody_is_missing)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 20 * SB_S);
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
}

Test(verdict, names_a_whole_node_that_cannot_be_reached)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 4; m++)
		sb_waits(c, m, 12 * SB_S);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	expect(CW_CLASS_NODE_UNREACHABLE, "", "4-7", "0-3");
	cr_expect_not_null(strstr(said_text(&v.said),
				  "node-b (ranks 4-7) has stopped reporting. The other 4 "),
			   "%s", said_text(&v.said));
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* ---- variations of never_entered ---- */

Test(verdict, says_what_a_missing_rank_is_held_by)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	b->ranks[3].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_NEVER_ENTERED, "stopped", "3", "0-2,4-7");
}

Test(verdict, sees_a_debugger)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	b->ranks[3].liveness = CW_LIVE_TRACED;
	expect(CW_CLASS_NEVER_ENTERED, "traced", "3", "0-2,4-7");
}

Test(verdict, sees_a_frozen_rank)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	b->ranks[3].flags |= CW_RANKF_FROZEN;
	expect(CW_CLASS_NEVER_ENTERED, "frozen", "3", "0-2,4-7");
	cr_expect_not_null(
		strstr(said_text(&v.said), "is frozen with its control group and never reached"),
		"%s", said_text(&v.said));
}

/* A debugger, a freezer or a signal stops a rank wherever it is. */
Test(verdict, names_what_holds_a_rank_inside_a_call)
{
	static const struct {
		uint32_t liveness, flags;
		const char *cause, *detail, *says;
	} holds[] = {
		{ CW_LIVE_TRACED, 0, "held by gdb (pid 77, root)", "traced",
		  " is held by gdb (pid 77, root) inside " },
		{ CW_LIVE_TRACED, 0, "", "traced", " is held by a debugger inside " },
		{ CW_LIVE_ALIVE, CW_RANKF_FROZEN, "frozen with its control group /docker/4f1c",
		  "frozen", " is frozen with its control group /docker/4f1c inside " },
		/* SIGCONT does not reach it. */
		{ CW_LIVE_STOPPED, CW_RANKF_FROZEN, NULL, "frozen",
		  " is frozen with its control group inside " },
		{ CW_LIVE_STOPPED, 0, NULL, "stopped", " is stopped by a signal inside " },
	};

	for (size_t i = 0; i < sizeof(holds) / sizeof(*holds); i++) {
		struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

		sb_all_wait_but(c, SB_MAX_RANKS, 72 * SB_S);
		b->ranks[3].liveness = holds[i].liveness;
		b->ranks[3].flags |= holds[i].flags;
		b->ranks[3].cause = holds[i].cause;
		expect(CW_CLASS_IN_COLLECTIVE, holds[i].detail, "3", "0-2,4-7");
		cr_expect_not_null(strstr(said_text(&v.said), holds[i].says), "%s",
				   said_text(&v.said));
		cr_expect_null(strstr(said_text(&v.said), "Not the program"), "%s",
			       said_text(&v.said));
		verdict_teardown();
		verdict_setup();
	}
}

Test(verdict, names_what_holds_a_rank_inside_of_the_making)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 0);

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].state = CW_COMM_INIT;
		(void)sb_call(c, m, CW_OP_COMM_INIT, 130 * SB_S);
	}
	b->ranks[3].liveness = CW_LIVE_TRACED;
	expect(CW_CLASS_INIT_STUCK, "traced", "3", "0-2,4-7");
	cr_expect_not_null(strstr(said_text(&v.said),
				  "rank 3 (node-a, pid 803) is held by a debugger inside "
				  "ncclCommInitRank of world."),
			   "%s", said_text(&v.said));
}

/* ---- unseen states ---- */

static bool rules_out(const char *what)
{
	for (uint32_t i = 0; i < v.n_ruled_out; i++)
		if (strstr(said_text(&v.ruled_out_said[i]), what))
			return true;
	return false;
}

/* The target of its wait is unknown: maybe it is a rank that waits for it here. */
Test(verdict, is_not_certain_of_a_rank_in_a_wait_that_is_not_seen_into)
{
	static const uint32_t waits[] = { CW_HOST_WAIT_UNKNOWN, CW_HOST_WAIT_LOCK, CW_HOST_WAIT_GIL,
					  CW_HOST_WAIT_QUEUE, CW_HOST_WAIT_SOCKET };

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

		sb_all_wait_but(c, 3, 300 * SB_S);
		b->ranks[3].host_wait = waits[i];
		b->ranks[3].host_activity_ns = SB_NOW - 290 * SB_S;
		expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
		cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
		cr_expect(!rules_out("no deadlock"), "%zu", i);
		cr_expect(rules_out("no dead process"));
		verdict_teardown();
		verdict_setup();
	}
}

Test(verdict, is_certain_of_a_rank_whose_wait_is_seen)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 300 * SB_S);
	b->ranks[3].host_wait = CW_HOST_WAIT_STORAGE;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect(rules_out("no deadlock: no ranks wait for each other in a cycle"));
	verdict_teardown();
	verdict_setup();

	c = sb_comm(b, "world", 0, 8, 1, 41);
	sb_all_wait_but(c, 3, 300 * SB_S);
	b->ranks[3].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_NEVER_ENTERED, "stopped", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect(rules_out("no deadlock: no ranks wait for each other in a cycle"));
}

static void calls_are_not_at_hand(struct sb_comm *c)
{
	c->members[5].entered = c->members[5].returned = 44;
	c->members[5].reached = c->members[5].completed = 44;
}

static void another_environment(struct sb_comm *c)
{
	(void)c;
	b->ranks[2].env_hash = 2;
}

static void a_recording(struct sb_comm *c)
{
	(void)c;
	b->ranks[2].liveness = CW_LIVE_UNKNOWN;
}

static void calls_were_lost(struct sb_comm *c)
{
	(void)c;
	b->ranks[2].dropped = 1;
}

static void a_node_is_silent(struct sb_comm *c)
{
	(void)c;
	b->node_state[1] = CW_NODE_SILENT;
}

Test(verdict, rules_out_each_cause_only_where_it_was_looked_for)
{
	static const struct {
		const char *cause;
		void (*hide)(struct sb_comm *c);
	} causes[] = {
		{ "no mismatch: ranks 0-7 made the same call as #42 on world",
		  calls_are_not_at_hand },
		{ "no mixed versions: all members loaded NCCL 2.28.9", another_environment },
		{ "no dead process: all 8 visible processes", a_recording },
		{ "no deadlock: no ranks wait for each other in a cycle", calls_were_lost },
		{ "no lost node: both nodes report", a_node_is_silent },
	};

	for (size_t i = 0; i < 2 * sizeof(causes) / sizeof(*causes); i++) {
		struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

		sb_all_wait_but(c, SB_MAX_RANKS, 72 * SB_S);
		for (uint32_t r = 0; r < 8; r++) {
			b->ranks[r].nccl_version = 22809;
			b->ranks[r].env_hash = 1;
		}
		if (i % 2)
			causes[i / 2].hide(c);
		judge();
		cr_expect_eq(rules_out(causes[i / 2].cause), i % 2 == 0, "%s", causes[i / 2].cause);
		verdict_teardown();
		verdict_setup();
	}
}

/* The rest of the job may hold what is ruled out of the part that is seen. */
Test(verdict, rules_out_nothing_of_ranks_that_are_not_visible)
{
	sb_all_wait_but(sb_comm(b, "world", 0, 8, 1, 41), SB_MAX_RANKS, 72 * SB_S);
	sb_comm(b, "pair", 0, 2, 1, 7)->members[1].rank = CW_SNAP_NONE;
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect(!rules_out("no deadlock") && !rules_out("no dead process") &&
		  !rules_out("no lost node"));
	cr_expect(rules_out("no mismatch"));
	cr_expect_null(strstr(said_text(&v.said), "Not the program"), "%s", said_text(&v.said));
}

Test(verdict, sees_a_rank_that_did_not_finish_what_others_completed)
{
	/* Rank 3 alone is still inside the pair's op, which rank 2 has completed. */
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 41);
	struct sb_comm *pair = sb_comm(b, "pair", 2, 2, 1, 7);

	sb_all_wait_but(world, 3, 12 * SB_S);
	pair->members[0].entered = pair->members[0].returned = 8;
	pair->members[0].reached = pair->members[0].completed = 8;
	sb_waits(pair, 1, 13 * SB_S);
	expect(CW_CLASS_IN_COLLECTIVE, "unfinished", "3", "0-2,4-7");
	cr_expect_eq(v.comm, 1);
	cr_expect_eq(v.coll_seq, 8);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect_not_null(strstr(said_text(&v.said), "1 of its 2 members"), "%s",
			   said_text(&v.said));
}

Test(verdict, sees_a_rank_that_makes_a_communicator_instead)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	b->ranks[3].host_call = (struct cw_op){ .kind = CW_OP_COMM_INIT,
						.root = CW_PEER_NONE,
						.peer = CW_PEER_NONE };
	expect(CW_CLASS_NEVER_ENTERED, "inside_other_call", "3", "0-2,4-7");
}

Test(verdict, names_several_ranks_that_never_entered)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 3 && m != 5)
			sb_waits(c, m, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3,5", "0-2,4,6-7");
}

Test(verdict, does_not_only_blame_the_majority)
{
	/* Rank 3 alone is in a call; are all others late, or is it one call too many? */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_waits(c, 3, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "0-2,4-7", "3");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_assert_eq(v.n_alternatives, 1);
	cr_expect_eq(v.alternatives[0].verdict_class, CW_CLASS_MISMATCH);
	cr_assert_eq(v.alternatives[0].n_culprits, 1);
	cr_expect_eq(v.alternatives[0].culprits[0], 3);
	cr_expect(v.alternatives[0].probability > 0 && v.alternatives[0].probability < 0.5);
	cr_expect(said_text(&v.alternatives[0].said)[0] != '\0');
}

Test(verdict, finds_who_aborted_under_waiting_ranks)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	c->members[3].state = CW_COMM_ABORTED;
	expect(CW_CLASS_NEVER_ENTERED, "aborted", "3", "0-2,4-7");
}

Test(verdict, expects_nothing_on_a_destroyed_comm)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++)
		c->members[m].state = CW_COMM_DESTROYED;
	sb_waits(c, 1, 12 * SB_S);
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict, describes_a_culprit_by_the_call_it_alone_is_missing_in)
{
	/* 0 waits for 2 in the pair; 1 and 3 wait for both in the world, a moment longer. */
	struct sb_comm *world = sb_comm(b, "world", 0, 4, 1, 41);
	struct sb_comm *pair = sb_comm(b, "pair", 0, 2, 2, 7);

	sb_waits(world, 1, 12 * SB_S + SB_S / 100);
	sb_waits(world, 3, 12 * SB_S + SB_S / 100);
	sb_waits(pair, 0, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "2", "0-1,3");
	cr_expect_eq(v.comm, 1);
	cr_expect_eq(v.coll_seq, 8);
}

Test(verdict, keeps_to_the_oldest_call_when_a_clearer_one_comes_later)
{
	struct sb_comm *world = sb_comm(b, "world", 0, 4, 1, 41);
	struct sb_comm *pair = sb_comm(b, "pair", 0, 2, 2, 7);

	sb_waits(world, 1, 12 * SB_S);
	sb_waits(world, 3, 12 * SB_S);
	sb_waits(pair, 0, 3 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "2", "0-1,3");
	cr_expect_eq(v.comm, 0);
}

/* ---- invisible ranks ---- */

Test(verdict, does_not_blame_who_cannot_be_seen)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	c->members[3].rank = CW_SNAP_NONE;
	expect(CW_CLASS_UNKNOWN, "not_visible", "", "0-2,4-7");
}

Test(verdict, is_less_sure_when_members_cannot_be_seen)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	c->members[5].rank = CW_SNAP_NONE;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4,6-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

Test(verdict, does_not_believe_old_waits_of_a_node_that_is_silent)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	/* They stood in a call when their daemon went; the others are far beyond it. */
	for (uint32_t m = 0; m < 4; m++)
		c->members[m].entered = c->members[m].returned = c->members[m].reached =
			c->members[m].completed = 900;
	for (uint32_t m = 4; m < 8; m++)
		sb_waits(c, m, 30 * SB_S);
	for (unsigned state = CW_NODE_SILENT; state <= CW_NODE_SAID_GOODBYE; state++) {
		b->node_state[1] = state;
		expect(CW_CLASS_HEALTHY, "", "", "");
		cw_verdict_fini(&v);
		snap = cw_snapshot_free(snap);
	}
}

Test(verdict, does_not_believe_old_waits_of_a_rank_its_daemon_has_not_found_again)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);
	struct cw_verdict again;

	for (uint32_t m = 0; m < 7; m++)
		c->members[m].entered = c->members[m].returned = c->members[m].reached =
			c->members[m].completed = 900;
	sb_waits(c, 7, 30 * SB_S);
	expect(CW_CLASS_IN_COLLECTIVE, "unfinished", "7", "");
	snap->nodes[1].last_digest_ns = SB_NOW;
	snap->ranks[7].sampled_ns = SB_NOW - 20 * SB_S;
	cr_assert_eq(cw_verdict_compute(snap, &again), 0);
	cr_expect_eq(again.verdict_class, CW_CLASS_HEALTHY);
	cw_verdict_fini(&again);
}

Test(verdict, waits_for_a_daemon_that_said_goodbye)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 4; m++)
		sb_waits(c, m, 12 * SB_S);
	b->node_state[1] = CW_NODE_SAID_GOODBYE;
	expect(CW_CLASS_UNKNOWN, "daemon_restarting", "", "0-3");
}

Test(verdict, is_less_sure_when_another_missing_rank_is_on_a_silent_node)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 7; m++)
		if (m != 3)
			sb_waits(c, m, 12 * SB_S);
	b->node_state[1] = CW_NODE_SILENT;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-6");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* ---- several matters at once ---- */

Test(verdict, prefers_the_hang_to_a_straggler_elsewhere)
{
	struct sb_comm *low = sb_comm(b, "low", 0, 4, 1, 41);
	struct sb_comm *high = sb_comm(b, "high", 4, 4, 1, 41);

	sb_all_wait_but(low, 1, SB_S / 100);
	sb_all_wait_but(high, 2, 12 * SB_S);
	b->ranks[6].host_wait = CW_HOST_WAIT_STORAGE;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "6", "4-5,7");
	cr_expect_eq(v.n_alternatives, 0);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(verdict, keeps_its_key_while_the_class_is_refined)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);
	struct cw_verdict_key before, after;

	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	sb_odd(c, 6, 42)->count = 1000;
	c->members[6].completed = 42;
	sb_waits(c, 6, 2 * SB_S);
	expect(CW_CLASS_IN_COLLECTIVE, "unfinished", "0-5,7", "6");
	cr_expect(v.wants_windows);
	before = cw_verdict_key(snap, &v);
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	expect(CW_CLASS_MISMATCH, "count", "6", "0-5,7");
	after = cw_verdict_key(snap, &v);
	cr_expect(cw_verdict_key_is_same(&after, &before));
}
