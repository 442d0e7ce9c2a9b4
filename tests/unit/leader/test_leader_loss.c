/* SPDX-License-Identifier: Apache-2.0 */
/* Leaders and other nodes that are lost, replaced, frozen, or cut off from each other. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/cluster/leader_fixture.h"

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
	cr_assert_str_eq(c.alerts[0].verdict_class, "node_unreachable");
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
	cr_assert_not_null(strstr(cluster_job(&c, first)->view.summary, "partitioned"));
	/* The other two have a leader of their own. That one sees the majority and may alert. */
	for (unsigned i = 0; i < c.n_alerts; i++)
		cr_assert_neq(c.alerts[i].node, first);
	cr_assert_leq(c.n_alerts, 1);
}

/*
 * First one node reaches only one other, then that one reaches no node any more. It knows two nodes
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

/* Longer than a lost node is remembered. */
#define FORGOTTEN_S ((double)CW_JOB_DIGESTS_FORGET_NS / 1e9 + 100)

static unsigned not_leading(void)
{
	return cluster_leader(&c) == 0 ? 1 : 0;
}

static void expect_all_again(const char *how)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0, "%s: %d", how, leader);
	cr_assert_not_null(cluster_job(&c, (unsigned)leader), "%s", how);
	cr_expect_eq(cluster_job(&c, (unsigned)leader)->view.ranks, 9, "%s: %u ranks", how,
		     cluster_job(&c, (unsigned)leader)->view.ranks);
}

Test(leader_loss, node_that_was_forgotten_is_seen_when_it_comes_back)
{
	unsigned other = not_leading();
	unsigned leader = (unsigned)cluster_leader(&c);

	cluster_kill(&c, other);
	cluster_run(&c, FORGOTTEN_S);
	cr_expect_eq(cluster_job(&c, leader)->view.ranks, 6);
	cluster_revive(&c, other);
	cluster_run(&c, 60);
	expect_all_again("killed");

	cluster_freeze(&c, other);
	cluster_run(&c, FORGOTTEN_S);
	cr_expect_eq(cluster_job(&c, leader)->view.ranks, 6);
	cluster_thaw(&c, other);
	cluster_run(&c, 60);
	expect_all_again("held");

	cluster_cut(&c, other, leader);
	cluster_run(&c, FORGOTTEN_S);
	cluster_join(&c, other, leader);
	cluster_run(&c, 60);
	expect_all_again("cut off from the leader");

	for (unsigned i = 0; i < c.n_nodes; i++)
		if (i != other)
			cluster_cut(&c, other, i);
	cluster_run(&c, FORGOTTEN_S);
	for (unsigned i = 0; i < c.n_nodes; i++)
		if (i != other)
			cluster_join(&c, other, i);
	cluster_run(&c, 60);
	expect_all_again("cut off from all");

	cluster_freeze(&c, leader);
	cluster_run(&c, FORGOTTEN_S);
	cluster_thaw(&c, leader);
	cluster_run(&c, 60);
	expect_all_again("the leader held");
	cr_expect_eq((unsigned)cluster_leader(&c), leader);
	cr_expect_eq(c.n_alerts, 0);
}

/* The alert's statement stays valid, as long as no digest shows the opposite. */
Test(leader_loss, hang_of_a_node_that_was_forgotten_stays_one_incident)
{
	unsigned other = not_leading(), leader = (unsigned)cluster_leader(&c);
	const struct cw_job *job;

	lose_node(other);
	for (unsigned i = 0; i < 16; i++) {
		cluster_run(&c, FORGOTTEN_S / 8);
		job = cluster_job(&c, leader);
		cr_assert_eq(c.n_alerts, 1, "%u: %u alerts", i, c.n_alerts);
		cr_expect_str_eq(cw_job_incidents_id(&job->incidents), c.alerts[0].id, "%u", i);
		cr_expect_eq(job->view.phase, CW_STALL_HANG, "%u: %s", i, job->view.summary);
	}
	cluster_revive(&c, other);
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1, "%u", c.n_alerts);
	expect_all_again("hang");
	job = cluster_job(&c, leader);
	cr_expect_str_eq(cw_job_incidents_id(&job->incidents), c.alerts[0].id);
}

/* Nothing else keeps the job in the leader's memory. */
Test(leader_loss, job_of_one_node_that_was_forgotten_is_watched_when_it_comes_back)
{
	unsigned leader = (unsigned)cluster_leader(&c), other = not_leading();
	const struct cw_job *job;

	c.first_node = other;
	c.n_rank_nodes = 1;
	cluster_run(&c, 30);
	cr_assert_eq((unsigned)cluster_leader(&c), leader);
	for (unsigned i = 0; i < c.n_nodes; i++)
		if (i != other)
			cluster_cut(&c, other, i);
	cluster_run(&c, FORGOTTEN_S);
	cr_expect_null(cluster_job(&c, leader));
	cr_expect_eq((unsigned)cluster_leader(&c), other, "its own node leads meanwhile");
	for (unsigned i = 0; i < c.n_nodes; i++)
		if (i != other)
			cluster_join(&c, other, i);
	cluster_run(&c, 60);
	cr_expect_eq((unsigned)cluster_leader(&c), leader);
	job = cluster_job(&c, leader);
	cr_assert_not_null(job);
	cr_expect_eq(job->view.ranks, 9);
	cr_expect_eq(c.n_alerts, 0);
}

static const char *closed_as(unsigned node, const char *id)
{
	const struct fake_store_bundle *b = cluster_bundle(&c, node, id);

	cr_assert_not_null(b);
	return json_string_value(json_object_get(b->incident, "closed_as"));
}

/* It hangs on, out of sight: no node has seen it end. */
Test(leader_loss, incident_of_a_node_that_was_forgotten_is_not_said_to_be_over)
{
	unsigned leader = (unsigned)cluster_leader(&c), other = not_leading();
	char id[CW_INCIDENT_ID_LEN];

	c.first_node = other;
	c.n_rank_nodes = 1;
	cluster_run(&c, 30);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 60));
	cr_assert_eq(c.alerts[0].node, leader);
	(void)snprintf(id, sizeof(id), "%s", c.alerts[0].id);
	cluster_freeze(&c, other);
	cluster_run(&c, FORGOTTEN_S);
	cr_expect_null(cluster_job(&c, leader));
	cr_expect_null(closed_as(leader, id), "%s", closed_as(leader, id));
	cluster_thaw(&c, other);
	cluster_run(&c, 60);
	cr_assert_not_null(cluster_job(&c, leader));
	cr_expect_str_eq(cw_job_incidents_id(&cluster_job(&c, leader)->incidents), id);
	cr_expect_eq(c.n_alerts, 1);
}

/* The daemon is there and has no ranks any more: they have ended. */
Test(leader_loss, incident_of_a_node_whose_ranks_are_gone_is_over)
{
	unsigned leader = (unsigned)cluster_leader(&c), other = not_leading();

	c.first_node = other;
	c.n_rank_nodes = 1;
	cluster_run(&c, 30);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 60));
	c.is_gone = true;
	cluster_run(&c, 60);
	cr_expect_null(cluster_job(&c, leader));
	cr_expect_str_eq(closed_as(leader, c.alerts[0].id), "job_ended");
}
