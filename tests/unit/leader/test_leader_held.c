/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that are held up and go on: stopped by a signal, by a disk that hangs, with their
 * whole machine. In each case a hang is one incident with one id and one alert, and its
 * first statement stays.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/cluster/leader_fixture.h"

/* Below and above what other nodes wait, and longer than the patience with anything. */
static const unsigned holds_s[] = { 15, 60, 300 };
#define N_HOLDS (sizeof(holds_s) / sizeof(holds_s[0]))

TestSuite(leader_held, .init = leader_setup, .fini = leader_teardown);

static void start(unsigned n_nodes)
{
	cluster_fini(&c);
	cluster_init(&c, n_nodes, 9);
	cluster_run(&c, 5);
}

static void hold(unsigned node, double seconds)
{
	cluster_freeze(&c, node);
	cluster_run(&c, seconds);
	cluster_thaw(&c, node);
}

static const char *time_of(const json_t *incident, const char *name)
{
	const char *s =
		json_string_value(json_object_get(json_object_get(incident, "times"), name));

	return s ? s : "";
}

static void expect_same_times(const json_t *a, const json_t *b)
{
	static const char *const names[] = { "last_progress", "stall", "confirmed" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_str_eq(time_of(a, names[i]), time_of(b, names[i]), "%s", names[i]);
}

/* The hang that was alerted goes on being that one, on the node that told of it. */
static void expect_kept(unsigned node, unsigned puts, const json_t *first)
{
	const struct fake_store_bundle *b = cluster_bundle(&c, node, c.alerts[0].id);
	const struct cw_job *job = cluster_job(&c, node);

	cr_assert_eq(c.n_alerts, 1, "%u alerts", c.n_alerts);
	cr_expect_eq(b->puts, puts, "the bundle was written again %u times", b->puts - puts);
	expect_same_times(b->incident, first);
	cr_expect_null(json_object_get(b->incident, "closed_as"));
	cr_assert_not_null(job);
	cr_expect_str_eq(cw_job_incidents_id(&job->incidents), b->id);
	for (unsigned i = 0; i < c.n_nodes; i++)
		for (unsigned k = 0; k < c.nodes[i].store.n_bundles; k++)
			cr_expect_str_eq(c.nodes[i].store.bundles[k].id, b->id);
}

static void expect_closed_once(unsigned node, const json_t *first, double hung_s)
{
	const struct fake_store_bundle *b = cluster_bundle(&c, node, c.alerts[0].id);

	cluster_heal(&c);
	cluster_run(&c, 10);
	cr_expect_str_eq(json_string_value(json_object_get(b->incident, "closed_as")), "slow");
	expect_same_times(b->incident, first);
	cr_expect_float_eq(json_real_value(json_object_get(b->incident, "lasted_s")), hung_s, 3.0,
			   "lasted %f s",
			   json_real_value(json_object_get(b->incident, "lasted_s")));
	cr_assert_eq(c.n_alerts, 1);
}

static void hold_and_kill(unsigned node, double seconds)
{
	cluster_freeze(&c, node);
	cluster_run(&c, seconds);
	cluster_kill(&c, node);
	cluster_run(&c, 2);
	cluster_revive(&c, node);
}

/* held: hold up this node's daemon once the alert is out and all stacks are there. */
static void expect_one_incident_when(void (*befall)(unsigned node, double seconds), unsigned held,
				     unsigned culprit, unsigned hold_s)
{
	unsigned leader = (unsigned)cluster_leader(&c), puts;
	int64_t since_ns;
	json_t *first;

	cluster_fault(&c, FAULT_NEVER_ENTERED, culprit);
	since_ns = c.now_ns;
	cr_assert(cluster_run_until_alert(&c, 60));
	cluster_run(&c, 70);
	puts = cluster_bundle(&c, leader, c.alerts[0].id)->puts;
	first = json_deep_copy(cluster_bundle(&c, leader, c.alerts[0].id)->incident);
	befall(held, hold_s);
	cluster_run(&c, 400);
	cr_assert_eq(cluster_leader(&c), (int)leader);
	expect_kept(leader, puts, first);
	expect_closed_once(leader, first, (double)(c.now_ns - since_ns) / 1e9);
	json_decref(first);
}

static void expect_one_incident(unsigned held, unsigned culprit, unsigned hold_s)
{
	expect_one_incident_when(hold, held, culprit, hold_s);
}

Test(leader_held, one_node_alone_keeps_its_incident)
{
	for (unsigned i = 0; i < N_HOLDS; i++) {
		start(1);
		expect_one_incident(0, 4, holds_s[i]);
	}
}

Test(leader_held, leader_keeps_its_incident)
{
	for (unsigned i = 0; i < N_HOLDS; i++)
		for (unsigned n_nodes = 2; n_nodes <= 4; n_nodes++)
			for (unsigned culprit = 0; culprit < 9; culprit += 4) {
				start(n_nodes);
				expect_one_incident((unsigned)cluster_leader(&c), culprit,
						    holds_s[i]);
			}
}

Test(leader_held, leader_keeps_the_incident_of_a_job_whose_other_node_is_held)
{
	for (unsigned i = 0; i < N_HOLDS; i++)
		for (unsigned n_nodes = 2; n_nodes <= 4; n_nodes++)
			for (unsigned culprit = 0; culprit < 9; culprit += 4) {
				start(n_nodes);
				expect_one_incident(((unsigned)cluster_leader(&c) + 1) % n_nodes,
						    culprit, holds_s[i]);
			}
}

/* The leader need not have ranks of the job: then nothing of it reports meanwhile. */
static void start_on_one_node_led_by_another(void)
{
	unsigned leader;

	start(3);
	leader = (unsigned)cluster_leader(&c);
	cluster_fini(&c);
	cluster_init(&c, 3, 9);
	c.first_node = (leader + 1) % 3;
	c.n_rank_nodes = 1;
	cluster_run(&c, 5);
	cr_assert_eq(cluster_leader(&c), (int)leader);
}

Test(leader_held, leader_keeps_the_incident_of_a_job_whose_only_node_is_held)
{
	for (unsigned i = 0; i < N_HOLDS; i++) {
		start_on_one_node_led_by_another();
		expect_one_incident(c.first_node, 4, holds_s[i]);
	}
}

/* By a watchdog, while it is held up; its ranks come back from where descriptors are kept. */
Test(leader_held, killed_daemon_goes_on_with_its_incident)
{
	for (unsigned i = 0; i < N_HOLDS; i++)
		for (unsigned n_nodes = 1; n_nodes <= 3; n_nodes++)
			for (unsigned culprit = 0; culprit < 9; culprit += 4) {
				start(n_nodes);
				expect_one_incident_when(hold_and_kill,
							 (unsigned)cluster_leader(&c), culprit,
							 holds_s[i]);
			}
}

Test(leader_held, killed_node_that_does_not_lead_changes_nothing)
{
	for (unsigned i = 0; i < N_HOLDS; i++) {
		start(3);
		expect_one_incident_when(hold_and_kill, ((unsigned)cluster_leader(&c) + 1) % 3, 4,
					 holds_s[i]);
	}
}

/* The first statement stays, also where the stacks had not come and the daemon takes them anew. */
Test(leader_held, killed_daemon_completes_its_bundle)
{
	const struct fake_store_bundle *b;
	unsigned puts;
	json_t *first;

	start(1);
	c.evidence_mute = true;
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 60));
	b = cluster_bundle(&c, 0, c.alerts[0].id);
	cr_assert_not(b->has_stacks);
	puts = b->puts;
	first = json_deep_copy(b->incident);
	hold_and_kill(0, 15);
	c.evidence_mute = false;
	cluster_run(&c, 100);
	cr_expect_gt(b->puts, puts);
	cr_expect(b->has_stacks);
	expect_kept(0, b->puts, first);
	json_decref(first);
}

/* It went on and stands again in another call: nothing of the first is that one's. */
Test(leader_held, second_hang_after_a_restart_is_another_incident)
{
	start(1);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 60));
	cluster_run(&c, 70);
	hold_and_kill(0, 15);
	cluster_run(&c, 100);
	cluster_heal(&c);
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
	/* It got over that once: three times as long. */
	cr_assert(cluster_run_until_alert(&c, 1200));
	cluster_run(&c, 100);
	cr_assert_eq(c.n_alerts, 2);
	cr_assert_eq(c.nodes[0].store.n_bundles, 2);
	cr_expect_str_neq(c.alerts[0].id, c.alerts[1].id);
	cr_expect_str_neq(time_of(c.alerts[0].doc, "confirmed"),
			  time_of(c.alerts[1].doc, "confirmed"));
}

static void expect_one_alert(unsigned hold_s)
{
	cluster_run(&c, 200 + hold_s);
	cr_assert_eq(c.n_alerts, 1, "%u alerts", c.n_alerts);
	for (unsigned i = 0; i < c.n_nodes; i++)
		for (unsigned k = 0; k < c.nodes[i].store.n_bundles; k++)
			cr_expect_str_eq(c.nodes[i].store.bundles[k].id, c.alerts[0].id);
}

/* In the middle of patience, of the period for objections, of evidence, beside the alert itself. */
Test(leader_held, at_any_moment_of_a_hang_there_is_one_alert)
{
	for (unsigned i = 0; i < N_HOLDS; i++)
		for (unsigned tenths = 0; tenths < 180; tenths += 7) {
			start(3);
			cluster_fault(&c, FAULT_NEVER_ENTERED, tenths % 9);
			cluster_run(&c, tenths / 10.0);
			hold((unsigned)cluster_leader(&c), holds_s[i]);
			expect_one_alert(holds_s[i]);
		}
}

Test(leader_held, at_any_moment_of_a_hang_one_node_alone_alerts_once)
{
	for (unsigned i = 0; i < N_HOLDS; i++)
		for (unsigned tenths = 0; tenths < 180; tenths += 7) {
			start(1);
			cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
			cluster_run(&c, tenths / 10.0);
			hold(0, holds_s[i]);
			expect_one_alert(holds_s[i]);
		}
}

static void expect_nothing(unsigned held, unsigned hold_s)
{
	hold(held, hold_s);
	cluster_run(&c, 100);
	cr_assert_eq(c.n_alerts, 0);
	for (unsigned k = 0; k < c.n_nodes; k++)
		cr_assert_eq(c.nodes[k].store.n_bundles, 0);
}

Test(leader_held, healthy_job_raises_nothing)
{
	for (unsigned i = 0; i < N_HOLDS; i++) {
		for (unsigned n_nodes = 1; n_nodes <= 3; n_nodes++)
			for (unsigned node = 0; node < n_nodes; node++) {
				start(n_nodes);
				expect_nothing(node, holds_s[i]);
			}
		start_on_one_node_led_by_another();
		expect_nothing(c.first_node, holds_s[i]);
	}
}

/*
 * The culprit came to a call just before the daemon was held up. After the pause its wait is no
 * longer than the observed time. During the pause we cannot know which rank stood still.
 */
Test(leader_held, patience_does_not_run_out_while_nobody_evaluates)
{
	for (unsigned i = 0; i < N_HOLDS; i++) {
		start(1);
		cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
		cluster_run(&c, 1);
		hold(0, holds_s[i]);
		cluster_run(&c, 5);
		cr_expect_eq(c.n_alerts, 0);
		cluster_heal(&c);
		cluster_run(&c, 60);
		cr_expect_eq(c.n_alerts, 0);
		cr_expect_eq(c.nodes[0].store.n_bundles, 0);
	}
}

/* The log says once each that a job has begun and ended. */
Test(leader_held, job_stays_the_same)
{
	for (unsigned i = 0; i < N_HOLDS; i++) {
		uint64_t number;
		unsigned leader;

		start(3);
		leader = (unsigned)cluster_leader(&c);
		number = cluster_job(&c, leader)->number;
		hold(leader, holds_s[i]);
		for (unsigned s = 0; s < 200; s++) {
			cluster_run(&c, 0.1);
			cr_assert_not_null(cluster_job(&c, leader));
			cr_assert_eq(cluster_job(&c, leader)->number, number);
			cr_assert_eq(cluster_job(&c, leader)->view.ranks, 9);
		}
	}
}
