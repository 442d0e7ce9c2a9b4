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
