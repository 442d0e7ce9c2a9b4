/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test cases of a cluster, and the actions of its daemons in each, byte for byte as in
 * tests/data/yardstick/traces: a change of the leader that should change nothing must match them.
 *
 * CW_TRACES_OUT=DIRECTORY writes this build's traces there instead of comparing; CW_TRACES_FULL=1
 * with that, each beat in a line of its own.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/effect_trace.h"

/* One test case is a few KiB. */
#define FILE_MAX (256u << 10)

static struct cluster c, guest;
static struct effect_trace *trace;

static void begin(unsigned n_nodes, unsigned n_ranks)
{
	cluster_init(&c, n_nodes, n_ranks);
	trace = effect_trace_new(&c, getenv("CW_TRACES_FULL") != NULL);
}

/* ---- as frozen ---- */

static FILE *open_trace(const char *directory, const char *name, const char *mode)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s.trace", directory, name);
	f = fopen(path, mode);
	cr_assert_not_null(f, "%s: %m", path);
	return f;
}

static void freeze(const char *directory, const char *name, const char *text)
{
	FILE *f = open_trace(directory, name, "w");

	cr_assert_geq(fputs(text, f), 0);
	cr_assert_eq(fclose(f), 0);
}

static size_t line_length(const char *text)
{
	return strcspn(text, "\n");
}

/* The first line that differs says most. */
static void compare(const char *name, const char *was, const char *now)
{
	unsigned n = 1;

	if (!strcmp(was, now))
		return;
	for (; *was && *now && line_length(was) == line_length(now) &&
	       !memcmp(was, now, line_length(was));
	     n++) {
		was += line_length(was) + (was[line_length(was)] == '\n');
		now += line_length(now) + (now[line_length(now)] == '\n');
	}
	cr_assert_fail("%s.trace, line %u\n was: %.*s\n now: %.*s\n"
		       "all of it: tests/yardstick/run --traces",
		       name, n, (int)line_length(was), was, (int)line_length(now), now);
}

static void end(const char *name)
{
	static char was[FILE_MAX];
	_cleanup_(freep) char *now = effect_trace_end(trace);
	const char *out = getenv("CW_TRACES_OUT");
	FILE *f;

	cluster_fini(&c);
	if (out) {
		freeze(out, name, now);
		return;
	}
	f = open_trace(CW_TEST_DATA "/yardstick/traces", name, "r");
	was[fread(was, 1, sizeof(was) - 1, f)] = '\0';
	(void)fclose(f);
	compare(name, was, now);
}

/* A test of that name; its trace has the same name. */
#define TEST_CASE(name, n_nodes, n_ranks)                                                          \
	static void run_##name(void);                                                              \
	Test(traces, name)                                                                         \
	{                                                                                          \
		begin(n_nodes, n_ranks);                                                           \
		run_##name();                                                                      \
		end(#name);                                                                        \
	}                                                                                          \
	static void run_##name(void)

/* ---- roles ---- */

static unsigned leader(void)
{
	int n = cluster_leader(&c);

	cr_assert_geq(n, 0, "one leads");
	return (unsigned)n;
}

static unsigned another(unsigned than)
{
	return (than + 1) % c.n_nodes;
}

/* The first rank of the node. */
static unsigned rank_on(unsigned node)
{
	return (node * c.n_ranks + c.n_nodes - 1) / c.n_nodes;
}

static void hang_away_from(unsigned node)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, rank_on(another(node)));
}

/* ---- the job ---- */

TEST_CASE(healthy, 3, 9)
{
	cluster_run(&c, 60);
}

TEST_CASE(never_entered, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 90);
}

TEST_CASE(mismatch, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_MISMATCH, 4);
	cluster_run(&c, 90);
}

/* It holds up no rank, and shows in the hashes. */
TEST_CASE(wrong_operator, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_WRONG_REDOP, 4);
	cluster_run(&c, 90);
}

/* The call is seen, and leaves the records afterwards: it stays the same trouble. */
TEST_CASE(wrong_operator_leaves_records, 3, 9)
{
	c.step_every_ns = 2 * CW_NS_PER_MS;
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_WRONG_REDOP, 4);
	cluster_run(&c, 100);
}

/* The same where no record holds the call any more. */
TEST_CASE(wrong_operator_long_ago, 3, 9)
{
	c.step_every_ns = CW_NS_PER_MS;
	c.ops_recorded = 100;
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_WRONG_REDOP, 4);
	cluster_run(&c, 60);
}

TEST_CASE(killed_rank, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_KILLED, 2);
	cluster_run(&c, 90);
}

TEST_CASE(never_called, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_CALLED, 7);
	cluster_run(&c, 150);
}

TEST_CASE(slow_rank, 3, 9)
{
	cluster_run(&c, 5);
	for (unsigned i = 0; i < 2; i++) {
		cluster_fault(&c, FAULT_NEVER_ENTERED, 3);
		cluster_run(&c, 11);
		cluster_heal(&c);
		cluster_run(&c, 12);
	}
}

TEST_CASE(resolved, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 30);
	cluster_heal(&c);
	cluster_run(&c, 60);
}

TEST_CASE(two_hangs, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 30);
	cluster_heal(&c);
	cluster_run(&c, 10);
	cluster_fault(&c, FAULT_KILLED, 1);
	cluster_run(&c, 60);
}

/* Its data are wrong, and it hangs besides. */
TEST_CASE(two_troubles, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_WRONG_REDOP, 4);
	cluster_run(&c, 2);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 7);
	cluster_run(&c, 90);
}

TEST_CASE(job_ends, 3, 9)
{
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 30);
	c.is_gone = true;
	cluster_run(&c, 30);
}

TEST_CASE(two_users_of_one_label, 3, 9)
{
	cluster_add_guest(&c, &guest, 2000);
	cluster_run(&c, 5);
	cluster_fault(&guest, FAULT_NEVER_ENTERED, 5);
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_KILLED, 2);
	cluster_run(&c, 60);
}

/* ---- the nodes ---- */

TEST_CASE(lost_node, 3, 9)
{
	unsigned lost;

	cluster_run(&c, 5);
	lost = another(leader());
	cluster_kill(&c, lost);
	cluster_fault(&c, FAULT_NODE_LOST, lost);
	cluster_run(&c, 90);
}

TEST_CASE(lost_with_its_leader, 3, 9)
{
	unsigned lost;

	cluster_run(&c, 5);
	lost = leader();
	cluster_kill(&c, lost);
	cluster_fault(&c, FAULT_NODE_LOST, lost);
	cluster_run(&c, 90);
}

TEST_CASE(leader_lost_in_a_hang, 3, 9)
{
	unsigned first;

	cluster_run(&c, 5);
	first = leader();
	hang_away_from(first);
	cluster_run(&c, 8);
	cluster_kill(&c, first);
	cluster_run(&c, 90);
}

TEST_CASE(leader_lost_after_its_alert, 3, 9)
{
	unsigned first;

	cluster_run(&c, 5);
	first = leader();
	hang_away_from(first);
	cluster_run(&c, 30);
	cluster_kill(&c, first);
	cluster_run(&c, 60);
	cluster_revive(&c, first);
	cluster_run(&c, 30);
}

TEST_CASE(link_cut_and_back, 3, 9)
{
	unsigned first;

	cluster_run(&c, 5);
	first = leader();
	cluster_cut(&c, first, another(first));
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_NEVER_ENTERED, rank_on(another(another(first))));
	cluster_run(&c, 40);
	cluster_join(&c, first, another(first));
	cluster_run(&c, 40);
}

TEST_CASE(leader_cut_off, 3, 9)
{
	unsigned first;

	cluster_run(&c, 5);
	first = leader();
	cluster_cut(&c, first, another(first));
	cluster_cut(&c, first, another(another(first)));
	hang_away_from(first);
	cluster_run(&c, 60);
	cluster_join(&c, first, another(first));
	cluster_join(&c, first, another(another(first)));
	cluster_run(&c, 30);
}

/* The daemon of a leader is killed, and started again at once. */
TEST_CASE(daemon_restarted, 3, 9)
{
	unsigned first;

	cluster_run(&c, 5);
	first = leader();
	hang_away_from(first);
	cluster_run(&c, 13);
	cluster_kill(&c, first);
	cluster_revive(&c, first);
	cluster_run(&c, 60);
}

TEST_CASE(leader_held_60_s, 3, 9)
{
	unsigned first;

	cluster_run(&c, 5);
	first = leader();
	hang_away_from(first);
	cluster_run(&c, 11);
	cluster_freeze(&c, first);
	cluster_run(&c, 60);
	cluster_thaw(&c, first);
	cluster_run(&c, 60);
}

TEST_CASE(node_held_60_s, 3, 9)
{
	unsigned held;

	cluster_run(&c, 5);
	held = another(leader());
	cluster_freeze(&c, held);
	cluster_run(&c, 20);
	hang_away_from(held);
	cluster_run(&c, 40);
	cluster_thaw(&c, held);
	cluster_run(&c, 60);
}

TEST_CASE(sixteen_nodes, 16, 32)
{
	cluster_run(&c, 3);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 21);
	cluster_run(&c, 20);
}

/* ---- the way between them ---- */

static void hang_over_a_bad_way(struct network_digests link)
{
	cluster_run(&c, 5);
	c.net->digest_faults = link;
	cluster_run(&c, 10);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 60);
}

TEST_CASE(digests_late, 3, 9)
{
	hang_over_a_bad_way(
		(struct network_digests){ .late_every = 1, .late_ns = 3 * CW_NS_PER_S });
}

TEST_CASE(digests_twice, 3, 9)
{
	hang_over_a_bad_way((struct network_digests){ .twice_every = 2 });
}

TEST_CASE(digests_out_of_order, 3, 9)
{
	hang_over_a_bad_way((struct network_digests){
		.late_every = 3, .twice_every = 4, .late_ns = 2500 * CW_NS_PER_MS });
}

/* ---- words from users and other nodes ---- */

TEST_CASE(muted, 3, 9)
{
	c.suppress_reason = "muted";
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 60);
}

TEST_CASE(alert_refused, 3, 9)
{
	c.alerts_fail = true;
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 40);
	c.alerts_fail = false;
	cluster_run(&c, 60);
}

TEST_CASE(no_evidence, 3, 9)
{
	c.evidence_mute = true;
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 60);
}

static void object(unsigned from)
{
	const struct cw_job *led = cluster_job(&c, leader());
	const struct cw_message msg = { .type = CW_MSG_INCIDENT_OBJECTION,
					.incident_objection = {
						.id = cw_job_incidents_id(&led->incidents),
						.node = c.nodes[from].name,
						.reason = "the alert went out from here",
						.uid = CLUSTER_UID,
						.label = CLUSTER_LABEL,
					} };

	if (*msg.incident_objection.id)
		(void)cw_transport_send(c.nodes[from].transport, c.nodes[leader()].name, &msg);
}

static void hang_while_one_objects(unsigned from, unsigned rank)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, rank);
	for (unsigned i = 0; i < 55; i++) {
		object(from);
		cluster_run(&c, 2);
	}
}

TEST_CASE(objection_of_one, 3, 9)
{
	cluster_run(&c, 5);
	hang_while_one_objects(another(leader()), 8);
}

TEST_CASE(objection_of_the_other, 3, 9)
{
	cluster_run(&c, 5);
	hang_while_one_objects(another(another(leader())), 8);
}

/* ---- a later version ---- */

TEST_CASE(newer_peers, 4, 8)
{
	network_set_newer(c.net, 1);
	network_set_newer(c.net, 2);
	cluster_run(&c, 22);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
	cluster_run(&c, 60);
}

TEST_CASE(upgraded_one_by_one, 4, 8)
{
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
	for (unsigned i = 0; i < 4; i++) {
		cluster_run(&c, 7);
		cluster_upgrade(&c, i);
	}
	cluster_run(&c, 60);
}
