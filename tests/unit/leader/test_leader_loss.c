/* SPDX-License-Identifier: Apache-2.0 */
/* Leaders and other nodes that are lost, replaced, frozen, or cut off from each other. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/leader_fixture.h"

/* After leader_setup(): the suite's comes first. */
static void start_two(void)
{
	cluster_fini(&c);
	cluster_init(&c, 2, 8);
	cluster_run(&c, 5);
}

/* A rank on a node that is not this one. */
static unsigned rank_away_from(unsigned node)
{
	return node == 0 ? 8 : 0;
}

TestSuite(leader_loss, .init = leader_setup, .fini = leader_teardown);

Test(leader_loss, next_leader_takes_over_10_s_after_the_first_is_lost)
{
	int first = cluster_leader(&c), second;

	cluster_kill(&c, (unsigned)first);
	cluster_run(&c, 12);
	second = cluster_leader(&c);
	cr_assert_geq(second, 0);
	cr_assert_neq(second, first);
	cr_assert_eq(cluster_job(&c, (unsigned)second)->view.ranks, 9, "the lost ones are known");
}

static bool blames_all_ranks_of(const struct cluster_alert *a, unsigned node)
{
	const json_t *culprits = json_object_get(a->doc, "culprits");
	json_t *each;
	size_t i;

	json_array_foreach (culprits, i, each) {
		const char *host = json_string_value(json_object_get(each, "host"));

		if (json_integer_value(json_object_get(each, "rank")) !=
			    (json_int_t)(node * c.n_ranks / c.n_nodes + i) ||
		    strcmp(host, c.nodes[node].name) != 0 ||
		    json_integer_value(json_object_get(each, "pid")) == 0)
			return false;
	}
	return json_array_size(culprits) == c.n_ranks / c.n_nodes;
}

/* A node with its daemon and its ranks; the first one of those it runs is the cause of all waiting.
 */
static void lose_node(unsigned node)
{
	cluster_kill(&c, node);
	cluster_fault(&c, FAULT_NODE_LOST, node);
}

static void expect_lost_and_named(unsigned lost)
{
	lose_node(lost);
	cr_assert(cluster_run_until_alert(&c, 60));
	cr_assert_str_eq(c.alerts[0].klass, "node_unreachable");
	cr_assert(blames_all_ranks_of(&c.alerts[0], lost));
	cr_assert_leq(leader_alert_delay_s(&c.alerts[0]), 25.0, "%f",
		      leader_alert_delay_s(&c.alerts[0]));
}

Test(leader_loss, ranks_of_a_lost_node_are_named_within_25_s)
{
	unsigned lost = ((unsigned)cluster_leader(&c) + 1) % 3;

	expect_lost_and_named(lost);
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader_loss, ranks_lost_with_their_leader_are_named_within_25_s)
{
	unsigned lost = (unsigned)cluster_leader(&c);

	expect_lost_and_named(lost);
	cr_assert_eq(json_integer_value(json_object_get(
			     json_object_get(c.alerts[0].doc, "coverage"), "ranks_seen")),
		     9);
	cr_assert(leader_alert_has_note(&c.alerts[0], "does not report"));
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
}

/* Half of the nodes are left: no minority. */
Test(leader_loss, one_of_two_nodes_speaks_when_the_other_is_lost, .init = start_two)
{
	unsigned lost = (unsigned)cluster_leader(&c);

	expect_lost_and_named(lost);
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader_loss, a_leader_that_comes_back_leads_again_and_nobody_else)
{
	unsigned first = (unsigned)cluster_leader(&c);

	cluster_kill(&c, first);
	cluster_run(&c, 15);
	cr_assert_neq(cluster_leader(&c), (int)first);
	cluster_revive(&c, first);
	cluster_run(&c, 5);
	cr_assert_eq(cluster_leader(&c), (int)first);
	cr_assert_eq(cluster_job(&c, first)->view.ranks, 9);
	cluster_run(&c, 60);
	cr_assert_eq(c.n_alerts, 0);
}

Test(leader_loss, silent_leader_is_replaced_as_a_lost_one)
{
	int first = cluster_leader(&c), second;

	cluster_freeze(&c, (unsigned)first);
	cluster_run(&c, 13);
	second = cluster_leader(&c);
	cr_assert_geq(second, 0);
	cr_assert_neq(second, first);
}

/* Its last beat may be younger than its last digest. */
Test(leader_loss, a_node_that_freezes_at_any_moment_is_not_taken_for_one_that_has_left)
{
	for (unsigned tenths = 0; tenths < 20; tenths++) {
		unsigned leader, frozen;

		cluster_fini(&c);
		cluster_init(&c, 3, 9);
		cluster_run(&c, 20 + tenths / 10.0);
		leader = (unsigned)cluster_leader(&c);
		frozen = (leader + 1) % 3;
		cluster_freeze(&c, frozen);
		for (unsigned s = 0; s < 9; s++) {
			cluster_run(&c, 1);
			cr_assert_eq(cluster_job(&c, leader)->view.ranks, 9,
				     "frozen %u tenths later, gone after %u s", tenths, s + 1);
		}
	}
}

Test(leader_loss, hang_while_the_leader_is_lost_is_found_by_the_next)
{
	unsigned first = (unsigned)cluster_leader(&c);

	cluster_kill(&c, first);
	cluster_fault(&c, FAULT_NEVER_ENTERED, rank_away_from(first));
	cr_assert(cluster_run_until_alert(&c, 60));
	cr_assert_neq(c.alerts[0].node, first);
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader_loss, leader_without_most_nodes_is_cut_off_and_silent)
{
	unsigned first = (unsigned)cluster_leader(&c);

	for (unsigned i = 0; i < 3; i++)
		if (i != first)
			cluster_cut(&c, first, i);
	cluster_fault(&c, FAULT_NEVER_ENTERED, rank_away_from(first));
	cluster_run(&c, 40);
	cr_assert(cluster_job(&c, first)->view.is_cut_off);
	cr_assert_not_null(strstr(cluster_job(&c, first)->view.summary, "cut off"));
	/* The other two have a leader of their own, who sees most and may speak. */
	for (unsigned i = 0; i < c.n_alerts; i++)
		cr_assert_neq(c.alerts[i].node, first);
	cr_assert_leq(c.n_alerts, 1);
}

/*
 * First one node reaches only one other, then that one reaches nobody any more: it knows two nodes
 * of four, itself among them, and must not take the rest of the job for lost.
 */
Test(leader_loss, node_that_is_alone_says_nothing_whomever_it_knows)
{
	for (unsigned pair = 0; pair < 4; pair++) {
		unsigned lone = pair, friend = (pair + 1) % 4;
		struct cluster four;

		cluster_init(&four, 4, 8);
		cluster_run(&four, 5);
		for (unsigned i = 0; i < 4; i++)
			if (i != lone && i != friend)
				cluster_cut(&four, friend, i);
		cluster_run(&four, 20);
		for (unsigned i = 0; i < 4; i++)
			if (i != lone)
				cluster_cut(&four, lone, i);
		cluster_run(&four, 15);
		cluster_fault(&four, FAULT_NEVER_ENTERED, 2 * ((lone + 2) % 4));
		cluster_run(&four, 100);
		for (unsigned i = 0; i < four.n_alerts; i++) {
			cr_assert_neq(four.alerts[i].node, lone);
			cr_assert_neq(four.alerts[i].node, friend);
		}
		cluster_fini(&four);
	}
}

Test(leader_loss, two_leaders_behind_a_cut_link_alert_once)
{
	unsigned first = (unsigned)cluster_leader(&c), second = (first + 1) % 3;
	unsigned third = 3 - first - second;

	/* The second cannot reach the leader; the third hears both. */
	cluster_cut(&c, first, second);
	cluster_run(&c, 15);
	cluster_fault(&c, FAULT_NEVER_ENTERED, third * 3);
	cluster_run(&c, 90);
	cr_assert_eq(cluster_leader(&c), -2, "two lead");
	cr_assert_eq(c.n_alerts, 1);
	/* The second stands in for a leader it does not reach: the third is believed ten minutes.
	 */
	cluster_run(&c, 450);
	cr_assert_eq(c.n_alerts, 1);
}
