/* SPDX-License-Identifier: Apache-2.0 */
#include "report/rank_sets.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lab/suite/watch.h"
#include "model/rankset.h"
#include "tests/support/snapshot/snap_builder.h"

static struct cw_snapshot *snap;
static struct rank_sets sets;

static void fini(void)
{
	rank_sets_fini(&sets);
	snap = cw_snapshot_free(snap);
}

TestSuite(rank_sets, .fini = fini);

/* "3 | 0-2,4-7": the sets in their order. */
static const char *as_text(void)
{
	static char text[1024];
	size_t used = 0;

	for (uint32_t i = 0; i < sets.n_sets; i++) {
		int32_t labels[SB_MAX_RANKS];
		char buf[256];

		for (uint32_t k = 0; k < sets.sets[i].n_ranks; k++)
			labels[k] = snap->ranks[sets.sets[i].ranks[k]].rank;
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", i ? " | " : "",
			cw_rankset_format(labels, sets.sets[i].n_ranks, buf, sizeof(buf)));
	}
	return text;
}

static void make(struct sb *b, uint32_t culprit)
{
	snap = sb_snapshot(b);
	cr_assert_eq(rank_sets_make(snap, &culprit, culprit != CW_SNAP_NONE, &sets), 0);
	sb_free(b);
}

Test(rank_sets, those_who_wait_alike_are_one_set_and_the_culprit_another)
{
	struct sb *b = sb_new(8, 2);

	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 41), 3, 20 * SB_S);
	make(b, 3);
	cr_assert_str_eq(as_text(), "3 | 0-2,4-7");
	cr_assert(sets.sets[0].is_culprit && sets.sets[0].hops == 0);
	cr_assert_eq(sets.sets[0].gate, CW_SNAP_NONE);
	cr_assert_eq(sets.sets[1].waits_for, 1u);
	cr_assert_eq(sets.sets[1].hops, 1);
	cr_assert_eq(sets.graph.gates[sets.sets[1].gate].n_waiters, 7);
}

/* Rank 3 is missing in its pair; 2 waits for it there, the rest behind these two. */
Test(rank_sets, ranks_further_up_the_chain_are_sets_of_their_own)
{
	struct sb *b = sb_new(8, 2);

	for (uint32_t first = 0; first < 8; first += 2)
		(void)sb_comm(b, "tp", first, 2, 1, 30);
	sb_all_wait_but(b->comms[1], 1, 20 * SB_S);
	sb_all_wait_but(sb_comm(b, "dp", 0, 4, 2, 60), 1, 15 * SB_S);
	sb_all_wait_but(sb_comm(b, "dp", 1, 4, 2, 60), 1, 15 * SB_S);
	make(b, 3);
	cr_assert_str_eq(as_text(), "3 | 1,5,7 | 2 | 0,4,6");
	cr_assert_eq(sets.sets[3].hops, 2);
	cr_assert_eq(sets.sets[3].waits_for, 1u << 2);
	cr_assert_eq(sets.comms.n, 2, "all pairs are one family, both strides of dp another");
	cr_assert_str_eq(sets.comms.families[sets.comms.of[0]].name, "tp");
	cr_assert_eq(sets.comms.families[sets.comms.of[0]].n_comms, 4);
}

Test(rank_sets, without_a_culprit_the_full_call_is_the_end)
{
	struct sb *b = sb_new(4, 2);

	sb_all_wait_but(sb_comm(b, "tp", 0, 4, 1, 41), SB_MAX_RANKS, 20 * SB_S);
	make(b, CW_SNAP_NONE);
	cr_assert_str_eq(as_text(), "0-3");
	cr_assert(sets.sets[0].is_full);
	cr_assert_eq(sets.sets[0].hops, 0);
}

Test(rank_sets, ranks_that_wait_for_nobody_are_not_upstream)
{
	struct sb *b = sb_new(6, 2);

	sb_all_wait_but(sb_comm(b, "a", 0, 3, 1, 41), 0, 20 * SB_S);
	(void)sb_comm(b, "b", 3, 3, 1, 7);
	make(b, 0);
	cr_assert_str_eq(as_text(), "0 | 1-2 | 3-5");
	cr_assert_eq(sets.sets[2].hops, CW_SNAP_NONE);
}

Test(rank_sets, the_ranks_of_a_lost_node_are_one_set)
{
	static const uint32_t lost[] = { 4, 5, 6, 7 };
	struct sb *b = sb_new(8, 2);

	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 41), 5, 20 * SB_S);
	b->node_state[1] = CW_NODE_UNREACHABLE;
	snap = sb_snapshot(b);
	cr_assert_eq(rank_sets_make(snap, lost, 4, &sets), 0);
	sb_free(b);
	cr_assert_str_eq(as_text(), "4-7 | 0-3");
	cr_assert(sets.sets[0].is_culprit);
	cr_assert_eq(sets.sets[1].hops, 1);
}

Test(rank_sets, numbers_in_names_do_not_make_a_family)
{
	struct sb *b = sb_new(8, 2);

	(void)sb_comm(b, "tp_0", 0, 4, 1, 5);
	(void)sb_comm(b, "tp_1", 4, 4, 1, 5);
	(void)sb_comm(b, NULL, 0, 2, 1, 5);
	(void)sb_comm(b, NULL, 2, 2, 1, 5);
	(void)sb_comm(b, NULL, 0, 2, 4, 5);
	make(b, CW_SNAP_NONE);
	cr_assert_eq(sets.comms.n, 3);
	cr_assert_eq(sets.comms.of[0], sets.comms.of[1]);
	cr_assert_eq(sets.comms.of[2], sets.comms.of[3]);
	cr_assert_neq(sets.comms.of[2], sets.comms.of[4], "another distance");
}

/* Every pair is in a call of another number: we merge by fewer properties. */
Test(rank_sets, there_are_never_more_than_can_be_read)
{
	struct sb *b = sb_new(60, 2);

	for (uint32_t i = 0; i < 30; i++) {
		if (i == SB_MAX_COMMS)
			break;
		sb_waits(sb_comm(b, "pair", 2 * i, 2, 1, 10 + i), 0, 20 * SB_S);
	}
	make(b, 1);
	cr_assert_leq(sets.n_sets, RANK_SETS_MAX);
	cr_assert_eq(sets.sets[0].n_ranks, 1);
	cr_assert(sets.sets[0].is_culprit);
}

/*
 * The job of 1,024 ranks that tests/e2e draws: three sets of victims, regardless of their number.
 */
static const char big[] = "scenario big\nranks 1024 per-node 64\ncomms tp size 8\n"
			  "comms dp size rest stride 8\nprogram\nloop\nwork 20ms\n"
			  "all_reduce tp 8192\nreduce_scatter dp 16384\nsync\nend\nend\n"
			  "fault 517 at 4s on tp all_reduce block\nexpect never_entered 517\nend\n";

static int look(void *user, const struct suite_scenario *s)
{
	struct cw_err err = { "" };

	(void)user;
	cr_assert_eq(cw_watch_snapshot(s, 10 * SB_S, &err, &snap), 0, "%s", err.text);
	return 0;
}

Test(rank_sets, a_thousand_ranks_are_four_sets)
{
	uint32_t culprit = CW_SNAP_NONE, total = 0;
	struct cw_err err = { "" };

	cr_assert_eq(cw_suite_read_text(big, strlen(big), "big", 1000, look, NULL, &err), 0, "%s",
		     err.text);
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].rank == 517)
			culprit = i;
	cr_assert_eq(rank_sets_make(snap, &culprit, 1, &sets), 0);
	cr_assert_eq(sets.n_sets, 4);
	for (uint32_t i = 0; i < sets.n_sets; i++)
		total += sets.sets[i].n_ranks;
	cr_assert_eq(total, 1024);
	cr_assert_eq(sets.sets[0].ranks[0], culprit);
	cr_assert_eq(sets.sets[3].hops, 2);
	cr_assert_eq(sets.comms.n, 2);
}
