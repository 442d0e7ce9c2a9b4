/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/record_layout.h"
#include "tests/unit/snap_builder.h"

static struct sb *b;
static struct cw_snapshot *snap;
static struct cw_verdict v;

static void setup(void)
{
	b = sb_new(8, 2);
}

static void teardown(void)
{
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	sb_free(b);
}

TestSuite(verdict, .init = setup, .fini = teardown);

static void judge(void)
{
	v = sb_verdict(b, &snap);
}

static void expect(unsigned klass, const char *detail, const char *culprits, const char *victims)
{
	judge();
	cr_expect_eq(v.klass, klass, "class %s (%s), not %s: %s", cw_class_name(v.klass), v.detail,
		     cw_class_name(klass), v.summary);
	cr_expect_str_eq(v.detail, detail, "%s: %s", v.detail, v.summary);
	cr_expect_str_eq(sb_culprits(snap, &v), culprits, "culprits %s: %s", sb_culprits(snap, &v),
			 v.summary);
	cr_expect_str_eq(sb_victims(snap, &v), victims, "victims %s: %s", sb_victims(snap, &v),
			 v.summary);
	if (getenv("SHOW")) {
		fprintf(stderr, "# %s/%s %s: %s\n", cw_class_name(v.klass), v.detail,
			cw_confidence_name(v.confidence), v.summary);
		for (uint32_t i = 0; i < v.n_culprits; i++)
			fprintf(stderr, "#   %s\n", v.culprits[i].reason);
		for (uint32_t i = 0; i < v.n_ruled_out; i++)
			fprintf(stderr, "#   not: %s\n", v.ruled_out[i]);
	}
}

Test(verdict, is_healthy_when_nobody_waits)
{
	(void)sb_comm(b, "world", 0, 8, 1, 41);
	expect(CW_CLASS_HEALTHY, "", "", "");
	cr_expect_eq(cw_verdict_key(snap, &v), 0);
}

Test(verdict, names_the_rank_that_never_entered)
{
	struct sb_comm *c = sb_comm(b, "tp_group", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect(!v.is_proof);
	cr_expect_eq(v.coll_seq, 42);
	cr_expect_eq(v.waiting_since_ns, SB_NOW - 12 * SB_S);
	cr_expect_str_eq(v.summary, "rank 3 (node-a, pid 803) never entered all_reduce #42 on comm "
				    "tp_group; ranks 0-2,4-7 have waited in it for 12 s");
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
	b->ranks[5].cause = "killed by SIGKILL sent by pid 4242 (python3, uid 1000)";
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect_not_null(strstr(v.summary, " was killed by SIGKILL sent by pid 4242 (python3, "
					     "uid 1000) before all_reduce #42 on comm world; "),
			   "%s", v.summary);
	cr_expect_not_null(strstr(v.culprits[0].reason, "killed by SIGKILL sent by pid 4242 "
							"(python3, uid 1000), 4.0 s ago; "),
			   "%s", v.culprits[0].reason);
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

Test(verdict, sees_a_rank_inside_another_call_that_waits_for_nobody)
{
	/* Rank 3 alone is still inside the pair's op, which rank 2 has completed. */
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 41);
	struct sb_comm *pair = sb_comm(b, "pair", 2, 2, 1, 7);

	sb_all_wait_but(world, 3, 12 * SB_S);
	pair->members[0].entered = pair->members[0].returned = 8;
	pair->members[0].reached = pair->members[0].completed = 8;
	sb_waits(pair, 1, 13 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "inside_other_call", "3", "0-2,4-7");
	cr_expect_eq(v.comm, 0);
	cr_expect_eq(v.coll_seq, 42);
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
	cr_expect_eq(v.alternatives[0].klass, CW_CLASS_MISMATCH);
	cr_assert_eq(v.alternatives[0].n_culprits, 1);
	cr_expect_eq(v.alternatives[0].culprits[0], 3);
	cr_expect(v.alternatives[0].probability > 0 && v.alternatives[0].probability < 0.5);
	cr_expect(v.alternatives[0].reason[0] != '\0');
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

/* ---- deaths ---- */

Test(verdict, leaves_a_rank_alone_that_died_after_its_part)
{
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 41);
	struct sb_comm *low = sb_comm(b, "low", 0, 4, 1, 9);

	(void)world;
	sb_all_wait_but(low, 2, 12 * SB_S);
	b->ranks[6].liveness = CW_LIVE_EXITED;
	b->ranks[6].ended_ns = SB_NOW - 20 * SB_S;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "2", "0-1,3");
}

Test(verdict, blames_an_exit_others_wait_for)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-4,6-7");
}

/* The host runs ahead of its device: that it had called #43 does not mean that #42 was done. */
Test(verdict, says_how_far_the_device_of_a_dead_rank_was)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	c->members[5].entered = c->members[5].returned = 43;
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect_not_null(strstr(v.culprits[0].reason, "but its device had only done #41"), "%s",
			   v.culprits[0].reason);
}

Test(verdict, takes_an_orderly_stop_for_no_incident)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 15;
	b->ranks[5].flags |= CW_RANKF_SHUTDOWN;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict, takes_the_end_of_most_ranks_for_the_end_of_the_job)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++) {
		if (m < 3) {
			sb_waits(c, m, 4 * SB_S);
			continue;
		}
		b->ranks[m].liveness = CW_LIVE_EXITED;
		b->ranks[m].exit_code = 1;
		b->ranks[m].ended_ns = SB_NOW - SB_S;
	}
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/* One rank was terminated, nobody else was, and the others wait for it for ever. */
Test(verdict, believes_in_an_orderly_stop_for_two_minutes)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 130 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 15;
	b->ranks[5].flags |= CW_RANKF_SHUTDOWN;
	b->ranks[5].ended_ns = SB_NOW - 130 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect(!v.is_proof);
	cr_expect_neq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

/* The processes of a whole node were killed; those of the other one hang. */
Test(verdict, names_the_dead_when_the_other_half_is_left_behind)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 4; m++)
		sb_waits(c, m, 130 * SB_S);
	for (uint32_t m = 4; m < 8; m++) {
		b->ranks[m].liveness = CW_LIVE_KILLED;
		b->ranks[m].term_signal = 9;
		b->ranks[m].ended_ns = SB_NOW - 130 * SB_S;
	}
	expect(CW_CLASS_PROCESS_DEAD, "killed", "4-7", "0-3");
	cr_expect(!v.is_proof);
}

Test(verdict, gives_two_deaths_at_once_time_to_become_a_shutdown)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 2 && m != 5)
			sb_waits(c, m, 4 * SB_S);
	b->ranks[2].liveness = b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[2].flags |= CW_RANKF_OOM_KILLED;
	b->ranks[5].flags |= CW_RANKF_OOM_KILLED;
	b->ranks[2].ended_ns = b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "oom_killed", "2,5", "0-1,3-4,6-7");
	cr_expect(!v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* ---- mismatch ---- */

struct field {
	const char *detail;
	unsigned kind; /* of the usual op */
	void (*change)(struct cw_op *op);
};

static void other_kind(struct cw_op *op)
{
	op->kind = CW_OP_REDUCE_SCATTER;
}

static void other_count(struct cw_op *op)
{
	op->count = 999;
	op->bytes = 3996;
}

static void other_dtype(struct cw_op *op)
{
	op->dtype = CW_DTYPE_INT32;
}

static void other_redop(struct cw_op *op)
{
	op->redop = CW_REDOP_MAX;
}

static void other_root(struct cw_op *op)
{
	op->root = 2;
}

static const struct field fields[] = {
	{ "kind", CW_OP_ALL_REDUCE, other_kind },   { "count", CW_OP_ALL_REDUCE, other_count },
	{ "dtype", CW_OP_ALL_REDUCE, other_dtype }, { "redop", CW_OP_ALL_REDUCE, other_redop },
	{ "root", CW_OP_BROADCAST, other_root },    { "root", CW_OP_REDUCE, other_root },
	{ "count", CW_OP_ALL_GATHER, other_count }, { "count", CW_OP_BROADCAST, other_count },
};

Test(verdict, names_the_field_that_differs)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

		c->usual.kind = (uint8_t)fields[i].kind;
		if (fields[i].kind == CW_OP_BROADCAST || fields[i].kind == CW_OP_REDUCE)
			c->usual.root = 0;
		sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
		fields[i].change(sb_odd(c, 4, 42));
		expect(CW_CLASS_MISMATCH, fields[i].detail, "4", "0-3,5-7");
		cr_expect(v.is_proof);
		cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
		cw_verdict_fini(&v);
		snap = cw_snapshot_free(snap);
		sb_clear_comms(b);
	}
}

Test(verdict, compares_bytes_where_nccl_does)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);
	struct cw_op *op;

	c->usual.kind = CW_OP_ALL_GATHER;
	op = sb_odd(c, 4, 41);
	op->dtype = CW_DTYPE_BF16;
	op->count = 2048;
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict, names_all_sides_when_none_is_smaller)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	for (uint32_t m = 0; m < 4; m++)
		sb_odd(c, m, 42)->count = 7;
	expect(CW_CLASS_MISMATCH, "count", "0-7", "");
}

Test(verdict, finds_a_mismatch_nobody_waits_for)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_odd(c, 4, 39)->redop = CW_REDOP_AVG;
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	expect(CW_CLASS_MISMATCH, "redop", "4", "");
	cr_expect_eq(v.coll_seq, 39);
	cr_expect(v.is_proof);
}

Test(verdict, does_not_blame_a_mismatch_for_what_comes_after_it)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 45);

	/* All are beyond it: that some wait now is the next step, and comes and goes. */
	sb_odd(c, 4, 39)->redop = CW_REDOP_AVG;
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	sb_waits(c, 0, SB_S);
	sb_waits(c, 1, SB_S);
	expect(CW_CLASS_MISMATCH, "redop", "4", "");
	cr_expect_eq(v.waiting_since_ns, 0);
}

Test(verdict, asks_for_windows_when_histories_differ)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_odd(c, 4, 39)->count = 5;
	expect(CW_CLASS_HEALTHY, "", "", "");
	cr_expect(v.wants_windows);
	cr_assert_eq(v.n_wanted, 1);
	cr_expect_eq(v.wanted[0], 0);
}

/* A loop of three different ops. */
static void make_loop(struct sb_comm *c)
{
	for (uint32_t m = 0; m < c->nranks; m++) {
		c->members[m].has_window = true;
		for (uint64_t s = 34; s <= 44; s++) {
			if (s % 3 == 0)
				continue;
			if (c->members[m].n_odd == SB_MAX_ODD)
				break;
			sb_odd(c, m, s)->count = 1000 * (s % 3);
		}
	}
}

Test(verdict, recognises_a_skipped_call)
{
	/* Rank 4 skipped #42 (usual) and stands in what for the others is #43 (1000). */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	make_loop(c);
	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	for (uint32_t i = 0; i < c->members[4].n_odd; i++)
		if (c->members[4].odd[i].coll_seq == 43)
			c->members[4].odd[i].coll_seq = 42;
	expect(CW_CLASS_MISMATCH, "missing", "4", "0-3,5-7");
}

Test(verdict, recognises_an_extra_call)
{
	/* Rank 4 put a broadcast before #42, so that its #43 is everybody's #42. */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	make_loop(c);
	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	for (uint32_t i = 0; i < c->members[4].n_odd; i++)
		if (c->members[4].odd[i].coll_seq >= 43)
			c->members[4].odd[i].coll_seq = 1;
	c->members[4].odd[0] = c->usual;
	c->members[4].odd[0].coll_seq = 42;
	c->members[4].odd[0].kind = CW_OP_BROADCAST;
	c->members[4].odd[0].root = 0;
	c->members[4].entered = c->members[4].returned = 43;
	expect(CW_CLASS_MISMATCH, "extra", "4", "0-3,5-7");
}

/* ---- inside ---- */

Test(verdict, blames_a_stopped_rank_inside_the_collective)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 20 * SB_S);
	b->ranks[6].liveness = CW_LIVE_STOPPED;
	expect(CW_CLASS_IN_COLLECTIVE, "stopped", "6", "0-5,7");
}

Test(verdict, does_not_say_in_collective_without_progress_words)
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

Test(verdict, is_at_most_possible_when_completion_is_unknown)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 20 * SB_S);
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].known &= ~(unsigned)(CW_KNOWN_REACHED | CW_KNOWN_COMPLETED);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict, sees_a_device_that_never_got_there)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 20 * SB_S);
	c->members[3].entered = c->members[3].returned = 42;
	expect(CW_CLASS_DEVICE_STALLED, "", "3", "0-2,4-7");
}

Test(verdict, lowers_its_confidence_when_records_lost_ops)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 12 * SB_S);
	b->ranks[3].dropped = 1;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* ---- rooted ops ---- */

Test(verdict, waits_for_the_root_of_a_broadcast_only)
{
	/* 0-3 wait for root 5; 6 and 7 have not come either, but nobody needs them yet. */
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	c->usual.kind = CW_OP_BROADCAST;
	c->usual.root = 5;
	for (uint32_t m = 0; m < 4; m++)
		sb_waits(c, m, 12 * SB_S);
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "5", "0-3");
}

Test(verdict, lets_the_root_of_a_reduce_wait_for_all)
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

Test(verdict, finds_two_comms_used_in_opposite_order)
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

Test(verdict, blames_the_rank_whose_order_differs_among_broadcasts)
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

Test(verdict, blames_the_rank_whose_order_differs)
{
	struct sb_comm *a = sb_comm(b, "a", 0, 8, 1, 10);
	struct sb_comm *c = sb_comm(b, "b", 0, 8, 1, 10);

	sb_all_wait_but(a, 6, 5 * SB_S);
	sb_waits(c, 6, 5 * SB_S);
	expect(CW_CLASS_DEADLOCK, "order", "6", "0-5,7");
}

Test(verdict, takes_no_cycle_for_proven_that_was_never_seen_at_once)
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
	m->p2p[m->n_p2p++] = (struct cw_snap_p2p){ .peer = peer,
						   .sends = kind == CW_OP_SEND ? seq : 0,
						   .recvs = kind == CW_OP_RECV ? seq : 0 };
}

Test(verdict, names_the_peer_that_posted_no_receive)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	p2p(c, 1, CW_OP_SEND, 2, 5);
	expect(CW_CLASS_P2P_UNMATCHED, "outside_nccl", "2", "1");
}

Test(verdict, finds_a_send_and_a_receive_of_different_sizes)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	p2p(c, 1, CW_OP_SEND, 2, 5);
	p2p(c, 2, CW_OP_RECV, 1, 5);
	c->members[1].call.bytes = 4096;
	c->members[2].call.bytes = 8192;
	expect(CW_CLASS_P2P_UNMATCHED, "size", "1-2", "");
	cr_expect(v.is_proof);
}

Test(verdict, follows_a_pipeline_to_its_silent_stage)
{
	/* 3 waits for 2, which waits for 1, which waits for 0. */
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	for (uint32_t m = 1; m < 4; m++)
		p2p(c, m, CW_OP_RECV, m - 1, 5);
	expect(CW_CLASS_P2P_UNMATCHED, "outside_nccl", "0", "1-3");
	cr_expect_eq(v.n_chain, 3);
}

Test(verdict, finds_a_ring_of_receives)
{
	struct sb_comm *c = sb_comm(b, "ring", 0, 4, 1, 0);

	for (uint32_t m = 0; m < 4; m++)
		p2p(c, m, CW_OP_RECV, (m + 3) % 4, 1);
	expect(CW_CLASS_DEADLOCK, "order", "0-3", "");
	cr_expect_eq(v.n_chain, 4);
}

/* ---- init ---- */

Test(verdict, says_who_is_missing_in_init)
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

Test(verdict, says_that_all_are_inside_init)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 0);

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].state = CW_COMM_INIT;
		(void)sb_call(c, m, CW_OP_COMM_INIT, 130 * SB_S);
	}
	expect(CW_CLASS_INIT_STUCK, "init", "", "0-7");
}

Test(verdict, names_the_rank_that_did_not_join_a_split)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 4);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 2)
			(void)sb_call(c, m, CW_OP_COMM_SPLIT, 130 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "split", "2", "0-1,3-7");
}

/* ---- what cannot be seen ---- */

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
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "6", "4-5,7");
	cr_expect_eq(v.n_alternatives, 0);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(verdict, keeps_its_key_while_the_class_is_refined)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);
	uint64_t before;

	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	sb_odd(c, 6, 42)->count = 1000;
	c->members[6].completed = 42;
	sb_waits(c, 6, 2 * SB_S);
	expect(CW_CLASS_IN_COLLECTIVE, "", "", "0-7");
	cr_expect(v.wants_windows);
	before = cw_verdict_key(snap, &v);
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	expect(CW_CLASS_MISMATCH, "count", "6", "0-5,7");
	cr_expect_eq(cw_verdict_key(snap, &v), before);
}
