/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster whose daemons are replaced one after the other, by ones that name a job by uid, label
 * and key instead of its hash: one job, one leader, one incident, whichever of them leads.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/cluster/cluster.h"

#define NODES 4u

static struct cluster c;

static void set_up(unsigned old_nodes)
{
	cluster_init(&c, NODES, 8);
	for (unsigned i = 0; i < NODES; i++)
		c.nodes[i].is_old = old_nodes >> i & 1;
}

static void tear_down(void)
{
	cluster_fini(&c);
}

static unsigned n_named_leaders(void)
{
	const char *first = cluster_elected(&c, 0);
	unsigned others = 0;

	for (unsigned i = 0; i < NODES; i++)
		others += strcmp(cluster_elected(&c, i), first) != 0;
	return 1 + others;
}

static uint64_t unnamed(void)
{
	struct cw_leader_stats stats;
	uint64_t n = 0;

	for (unsigned i = 0; i < NODES; i++) {
		cw_leader_stats(c.nodes[i].leader, &stats);
		n += stats.unnamed + cw_election_unnamed(c.nodes[i].election) +
		     c.nodes[i].unnamed_windows;
	}
	return n;
}

/* Longer than it takes to give up a leader whose answers are not understood. */
Test(upgrade, any_mixture_of_versions_has_one_leader_and_one_incident)
{
	for (unsigned old_nodes = 0; old_nodes < 1u << NODES; old_nodes++) {
		set_up(old_nodes);
		cluster_run(&c, 2 + 2.0 * CW_LEADER_SILENT_NS / CW_NS_PER_S);
		cr_assert_geq(cluster_leader(&c), 0, "old: %#x", old_nodes);
		cr_assert_eq(cluster_job(&c, (unsigned)cluster_leader(&c))->view.ranks, 8);
		cr_assert_eq(n_named_leaders(), 1, "old: %#x", old_nodes);
		cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
		cr_assert(cluster_run_until_alert(&c, 30), "old: %#x", old_nodes);
		cluster_run(&c, 60);
		cr_assert_eq(c.n_alerts, 1, "old: %#x", old_nodes);
		cr_assert_eq(c.alerts[0].culprit, 5);
		cr_assert_eq(n_named_leaders(), 1, "old: %#x", old_nodes);
		tear_down();
	}
}

Test(upgrade, a_proof_needs_no_windows_of_nodes_that_refuse_them)
{
	for (unsigned old_nodes = 0; old_nodes < 1u << NODES; old_nodes++) {
		set_up(old_nodes);
		cluster_run(&c, 5);
		cluster_fault(&c, FAULT_MISMATCH, 2);
		cr_assert(cluster_run_until_alert(&c, 30), "old: %#x", old_nodes);
		cr_assert_str_eq(c.alerts[0].verdict_class, "mismatch", "old: %#x", old_nodes);
		cr_assert_eq(c.alerts[0].culprit, 2, "old: %#x", old_nodes);
		cluster_run(&c, 30);
		cr_assert_eq(c.n_alerts, 1, "old: %#x", old_nodes);
		tear_down();
	}
}

Test(upgrade, daemons_replaced_one_by_one_during_a_hang_tell_of_it_once)
{
	set_up((1u << NODES) - 1);
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
	for (unsigned i = 0; i < NODES; i++) {
		cluster_run(&c, 7);
		cluster_upgrade(&c, i);
	}
	cluster_run(&c, 60);
	cr_assert_eq(c.n_alerts, 1);
	cr_assert_eq(c.alerts[0].culprit, 5);
	cr_assert_eq(n_named_leaders(), 1);
	cr_assert_geq(cluster_leader(&c), 0);
	tear_down();
}

Test(upgrade, what_names_no_job_is_counted_while_the_old_lead_and_never_after)
{
	set_up((1u << NODES) - 1);
	cluster_run(&c, 5);
	for (unsigned i = 0; i < NODES; i++)
		if ((int)i != cluster_leader(&c))
			cluster_upgrade(&c, i);
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
	cr_assert(cluster_run_until_alert(&c, 30));
	cr_assert_gt(unnamed(), 0, "windows and the announcement");
	for (unsigned i = 0; i < NODES; i++)
		cluster_upgrade(&c, i);
	for (unsigned i = 0; i < NODES; i++)
		c.nodes[i].unnamed_windows = 0;
	cluster_run(&c, 60);
	cr_expect_eq(unnamed(), 0);
	tear_down();
}
