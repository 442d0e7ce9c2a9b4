/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/cluster/leader_fixture.h"

TestSuite(leader, .init = leader_setup, .fini = leader_teardown);

Test(leader, exactly_one_node_leads_and_sees_all_ranks)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	cr_assert_eq(cluster_job(&c, (unsigned)leader)->view.ranks, 9);
	cr_assert_eq(cluster_job(&c, (unsigned)leader)->view.nodes, 3);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_str_eq(cluster_elected(&c, i), c.nodes[leader].name);
}

Test(leader, healthy_training_raises_nothing)
{
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(c.nodes[i].store.puts, 0);
}

Test(leader, rank_that_never_enters_is_named_once_within_15_s)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_assert_str_eq(c.alerts[0].verdict_class, "never_entered");
	cr_assert_eq(c.alerts[0].culprit, 4);
	cr_assert_leq(leader_alert_delay_s(&c.alerts[0]), 15.0, "%f",
		      leader_alert_delay_s(&c.alerts[0]));
	cr_assert_eq((int)c.alerts[0].node, cluster_leader(&c));
	cluster_run(&c, 300);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader, mismatching_count_is_named_within_8_s)
{
	cluster_fault(&c, FAULT_MISMATCH, 7);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_assert_str_eq(c.alerts[0].verdict_class, "mismatch");
	cr_assert_eq(c.alerts[0].culprit, 7);
	cr_assert_leq(leader_alert_delay_s(&c.alerts[0]), 8.0, "%f",
		      leader_alert_delay_s(&c.alerts[0]));
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
}

static const char *summary_of(const struct cluster_alert *a)
{
	return json_string_value(json_object_get(a->doc, "summary"));
}

Test(leader, wrong_operator_that_hangs_nobody_is_named_within_8_s)
{
	cluster_fault(&c, FAULT_WRONG_REDOP, 7);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_expect_str_eq(c.alerts[0].verdict_class, "mismatch");
	cr_expect_str_eq(json_string_value(json_object_get(c.alerts[0].doc, "detail")), "redop");
	cr_expect_str_eq(json_string_value(json_object_get(c.alerts[0].doc, "confidence")),
			 "certain");
	cr_expect_eq(c.alerts[0].culprit, 7);
	cr_expect_leq(leader_alert_delay_s(&c.alerts[0]), 8.0, "%f",
		      leader_alert_delay_s(&c.alerts[0]));
	cluster_run(&c, 300);
	cr_expect_eq(c.n_alerts, 1);
}

Test(leader, wrong_operator_of_a_fast_job_is_found_where_the_record_still_has_it)
{
	c.step_every_ns = CW_NS_PER_MS;
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_WRONG_REDOP, 2);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_expect_str_eq(json_string_value(json_object_get(c.alerts[0].doc, "detail")), "redop");
	cr_expect_eq(c.alerts[0].culprit, 2);
	cluster_run(&c, 60);
	cr_expect_eq(c.n_alerts, 1);
}

Test(leader, wrong_operator_that_has_left_all_records_is_told_by_hash_alone)
{
	c.step_every_ns = CW_NS_PER_MS;
	c.ops_recorded = 100;
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_WRONG_REDOP, 2);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_expect_str_eq(c.alerts[0].verdict_class, "mismatch");
	cr_expect_str_eq(json_string_value(json_object_get(c.alerts[0].doc, "detail")),
			 "unknown_call");
	cr_expect_str_eq(json_string_value(json_object_get(c.alerts[0].doc, "confidence")),
			 "likely");
	cr_expect_eq(c.alerts[0].culprit, 2);
	cr_expect_not_null(strstr(summary_of(&c.alerts[0]), "between collectives #"), "%s",
			   summary_of(&c.alerts[0]));
	cr_expect_leq(leader_alert_delay_s(&c.alerts[0]), 8.0, "%f",
		      leader_alert_delay_s(&c.alerts[0]));
	cluster_run(&c, 120);
	cr_expect_eq(c.n_alerts, 1);
}

Test(leader, job_with_wrong_data_can_still_hang)
{
	cluster_fault(&c, FAULT_WRONG_REDOP, 2);
	cr_assert(cluster_run_until_alert(&c, 20));
	cluster_run(&c, 10);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 6);
	cr_assert(cluster_run_until_alert(&c, 30));
	cr_expect_str_eq(c.alerts[1].verdict_class, "never_entered");
	cr_expect_eq(c.alerts[1].culprit, 6);
	cr_expect_str_neq(c.alerts[0].id, c.alerts[1].id);
	cr_expect_leq(leader_alert_delay_s(&c.alerts[1]), 18.0, "%f",
		      leader_alert_delay_s(&c.alerts[1]));
	cluster_heal(&c);
	cluster_run(&c, 60);
	cr_expect_eq(c.n_alerts, 2);
}

Test(leader, killed_rank_is_named_within_8_s)
{
	cluster_fault(&c, FAULT_KILLED, 2);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_assert_str_eq(c.alerts[0].verdict_class, "process_dead");
	cr_assert_eq(c.alerts[0].culprit, 2);
	cr_assert_leq(leader_alert_delay_s(&c.alerts[0]), 8.0, "%f",
		      leader_alert_delay_s(&c.alerts[0]));
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader, alert_carries_where_to_look)
{
	char command[64];

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	(void)snprintf(command, sizeof(command), "collwatch report %s", c.alerts[0].id);
	cr_assert_str_eq(json_string_value(json_object_get(c.alerts[0].doc, "command")), command);
	cr_assert_str_eq(json_string_value(json_object_get(c.alerts[0].doc, "leader")),
			 c.nodes[c.alerts[0].node].name);
	cr_assert_not_null(strstr(json_string_value(json_object_get(c.alerts[0].doc, "bundle")),
				  c.alerts[0].id));
	cr_assert_eq(json_integer_value(json_object_get(c.alerts[0].doc, "uid")), 1000);
}

Test(leader, evidence_is_asked_of_the_culprit_and_one_victim)
{
	unsigned asked = 0;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	for (unsigned i = 0; i < 3; i++)
		asked += c.nodes[i].evidence_asked;
	cr_assert_eq(asked, 2);
	cr_assert_geq(c.nodes[1].evidence_asked, 1);
}

Test(leader, stacks_of_all_others_are_asked_for_after_that)
{
	unsigned asked = 0;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	cluster_run(&c, 2);
	for (unsigned i = 0; i < 3; i++)
		asked += c.nodes[i].briefly_asked;
	cr_assert_eq(asked, c.n_ranks - 2);
}

Test(leader, stacks_are_read_before_the_hang)
{
	unsigned asked = 0;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	for (unsigned i = 0; i < 3; i++)
		asked += c.nodes[i].early_asked;
	/* At T/4. These ranks have no Python stacks, so there are no further readings. */
	cr_assert_eq(asked, 2, "the culprit and one victim");
}

Test(leader, missing_evidence_delays_the_alert_by_its_deadline_only)
{
	c.evidence_mute = true;
	cluster_fault(&c, FAULT_MISMATCH, 7);
	cr_assert(cluster_run_until_alert(&c, 20));
	cr_assert_leq(leader_alert_delay_s(&c.alerts[0]), 10.5);
}

Test(leader, rank_that_never_called_nccl_is_looked_for_on_its_node_and_named)
{
	cluster_fault(&c, FAULT_NEVER_CALLED, 4);
	cluster_run(&c, 8);
	cr_assert_eq(c.nodes[1].searches, 0, "too early");
	cr_assert(cluster_run_until_alert(&c, 300));
	cr_assert_gt(c.nodes[1].searches, 1, "again and again");
	cr_assert_str_eq(c.alerts[0].verdict_class, "init_stuck");
	cr_assert_eq(c.alerts[0].culprit, 4);
	cr_assert_eq(c.nodes[1].evidence_asked, 1);
	cluster_run(&c, 60);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader, nobody_is_looked_for_in_a_job_that_runs_or_hangs_later)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 60);
	cr_assert_eq(c.nodes[0].searches + c.nodes[1].searches + c.nodes[2].searches, 0);
}

Test(leader, stall_that_resolves_before_confirmation_alerts_nobody)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 8);
	cluster_heal(&c);
	cluster_run(&c, 60);
	cr_assert_eq(c.n_alerts, 0);
}

Test(leader, stall_that_went_on_is_kept_as_slow)
{
	const struct cw_job_view *view;
	unsigned leader = (unsigned)cluster_leader(&c);

	cr_assert_eq(cluster_job(&c, leader)->view.slow_for_ns, 0);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 11);
	cluster_heal(&c);
	cluster_run(&c, 5);
	view = &cluster_job(&c, leader)->view;
	cr_assert_eq(c.n_alerts, 0);
	cr_expect_eq(view->phase, CW_STALL_QUIET);
	cr_expect_geq(view->slow_for_ns, 10 * CW_NS_PER_S);
	cr_expect_leq(view->slow_for_ns, 13 * CW_NS_PER_S);
	cr_expect_not_null(strstr(view->slow_what, "rank 4"), "%s", view->slow_what);
}

Test(leader, hang_that_resolves_after_the_alert_closes_as_slow)
{
	const struct network_node *n;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	n = &c.nodes[c.alerts[0].node];
	cr_assert_null(json_object_get(n->store.last_put, "closed_as"));
	cluster_heal(&c);
	cluster_run(&c, 10);
	cr_assert_str_eq(json_string_value(json_object_get(n->store.last_put, "closed_as")),
			 "slow");
	cr_assert_geq(json_real_value(json_object_get(n->store.last_put, "lasted_s")), 10);
	cr_assert(json_is_string(
		json_object_get(json_object_get(n->store.last_put, "times"), "resolved")));
	cr_assert_str_eq(json_string_value(json_object_get(n->store.last_put, "id")),
			 c.alerts[0].id);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader, second_hang_of_a_job_is_another_incident)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	cluster_heal(&c);
	cluster_run(&c, 30);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
	/* It got over that once: three times as long. */
	cr_assert(cluster_run_until_alert(&c, 120));
	cr_assert_eq(c.n_alerts, 2);
	cr_assert_str_neq(c.alerts[0].id, c.alerts[1].id);
	cr_assert_eq(c.alerts[1].culprit, 5);
}

Test(leader, restarted_leader_does_not_alert_again)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	cluster_restart(&c, c.alerts[0].node);
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
	/* It did find the same incident again: the bundle is written under the same id. */
	cr_assert_str_eq(
		json_string_value(json_object_get(c.nodes[c.alerts[0].node].store.last_put, "id")),
		c.alerts[0].id);
}

/* Its leader was away for long, and the bundle was closed for that. */
Test(leader, an_unseen_incident_that_is_found_again_is_open_again)
{
	const struct fake_store_bundle *bundle;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	cluster_run(&c, 20);
	bundle = cluster_bundle(&c, c.alerts[0].node, c.alerts[0].id);
	cr_assert_not_null(bundle);
	(void)json_object_set_new(bundle->incident, "closed_as", json_string("unseen"));
	cluster_restart(&c, c.alerts[0].node);
	cluster_run(&c, 120);
	bundle = cluster_bundle(&c, c.alerts[0].node, c.alerts[0].id);
	cr_assert_not_null(bundle);
	cr_assert_null(json_object_get(bundle->incident, "closed_as"));
	cr_assert(
		cw_leader_has_open(c.nodes[c.alerts[0].node].leader, CLUSTER_UID, c.alerts[0].id));
	cr_assert_not(cw_leader_has_open(c.nodes[c.alerts[0].node].leader, CLUSTER_UID + 1,
					 c.alerts[0].id));
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader, undelivered_alert_is_tried_again)
{
	c.alerts_fail = true;
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cluster_run(&c, 20);
	cr_assert_eq(c.net->n_refused_alerts, 1);
	c.alerts_fail = false;
	cr_assert(cluster_run_until_alert(&c, 40));
	cluster_run(&c, 120);
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader, end_of_the_job_ends_what_is_watched)
{
	unsigned leader = (unsigned)cluster_leader(&c);

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 20));
	c.is_gone = true;
	cluster_run(&c, 10);
	cr_assert_null(cluster_job(&c, leader));
	cr_assert_str_eq(
		json_string_value(json_object_get(c.nodes[leader].store.last_put, "closed_as")),
		"job_ended");
	cr_assert_eq(c.n_alerts, 1);
}

static uint64_t evaluations_in(struct cluster *one, double seconds)
{
	struct cw_leader_stats before, after;

	cw_leader_stats(one->nodes[0].leader, &before);
	cluster_run(one, seconds);
	cw_leader_stats(one->nodes[0].leader, &after);
	return after.evaluations - before.evaluations;
}

Test(leader, jobs_that_are_costly_to_evaluate_are_evaluated_less_often)
{
	struct cluster one;

	cluster_init(&one, 1, 4);
	cr_assert_geq(evaluations_in(&one, 40), 35);
	one.evaluation_cost_ns = CW_NS_PER_S; /* followed by three seconds without */
	cr_assert_leq(evaluations_in(&one, 42), 15);
	cr_assert_geq(evaluations_in(&one, 42), 13);
	/* Late, but not never. */
	cluster_fault(&one, FAULT_NEVER_ENTERED, 3);
	cr_assert(cluster_run_until_alert(&one, 60));
	cluster_fini(&one);
}

Test(leader, says_which_daemon_was_missing_from_the_start)
{
	struct cluster one;

	cluster_init(&one, 3, 6);
	cluster_kill(&one, 2);
	cluster_run(&one, 5);
	cluster_fault(&one, FAULT_NEVER_ENTERED, 0);
	cr_assert(cluster_run_until_alert(&one, 30));
	cr_assert(leader_alert_has_note(&one.alerts[0], "no daemon answers on node-c:"));
	cluster_fini(&one);
}

Test(leader, node_without_peers_leads_itself)
{
	struct cluster one;

	cluster_init(&one, 1, 4);
	cluster_run(&one, 5);
	cluster_fault(&one, FAULT_NEVER_ENTERED, 3);
	cr_assert(cluster_run_until_alert(&one, 20));
	cr_assert_eq(one.alerts[0].culprit, 3);
	cr_assert(leader_alert_has_note(&one.alerts[0], "only the ranks of this node"));
	cluster_fini(&one);
}
