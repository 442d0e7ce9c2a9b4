/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/transport_effects.h"

TestSuite(members);

Test(election, weights_spread_jobs_over_nodes_evenly)
{
	static const char *const names[] = { "node-a", "node-b", "node-c", "node-d" };
	unsigned won[4] = { 0 };

	for (uint64_t job_hash = 1; job_hash <= 4000; job_hash++) {
		unsigned best = 0;

		for (unsigned i = 1; i < 4; i++)
			if (cw_election_weight(job_hash, names[i]) >
			    cw_election_weight(job_hash, names[best]))
				best = i;
		won[best]++;
	}
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_gt(won[i], 850, "%s %u", names[i], won[i]);
		cr_assert_lt(won[i], 1150, "%s %u", names[i], won[i]);
	}
}

static const char *leader_of(const struct cw_election *m, const char *label, uint32_t uid)
{
	struct cw_job_id job;

	cr_assert_eq(cw_job_id_make(uid, label, &job), 0);
	return cw_election_leader(m, &job);
}

Test(election, followers_learn_how_many_nodes_the_job_has)
{
	struct cluster c;

	cluster_init(&c, 3, 6);
	cluster_run(&c, 5);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_str_eq(cluster_elected(&c, i), c.nodes[cluster_leader(&c)].name);
	cr_assert_null(leader_of(c.nodes[0].election, CLUSTER_LABEL, CLUSTER_UID + 1));
	cluster_fini(&c);
}

static void note_nodes(const struct cw_election_job *job, void *user)
{
	*(uint32_t *)user = job->nodes;
}

/* Names of nodes go out only where they are few; their number always. */
Test(election, the_number_of_nodes_is_taken_where_no_names_come_along)
{
	const char *names[] = { "node-0", "node-1" };
	struct cw_msg_members few = {
		.label = CLUSTER_LABEL, .uid = CLUSTER_UID, .nodes = names, .n_nodes = 2
	};
	struct cw_msg_members many = { .label = CLUSTER_LABEL,
				       .uid = CLUSTER_UID,
				       .n_nodes_in_all = 2048 };
	struct cw_election *members;
	uint32_t nodes = 0;
	struct cluster c;

	cluster_init(&c, 1, 2);
	cluster_run(&c, 2);
	members = c.nodes[0].election;
	cw_election_each(members, note_nodes, &nodes);
	cr_expect_eq(nodes, 1, "of its own leader: %u", nodes);
	cw_election_answer(members, c.nodes[0].name, &many);
	cw_election_each(members, note_nodes, &nodes);
	cr_expect_eq(nodes, 2048);
	cw_election_answer(members, c.nodes[0].name, &few);
	cw_election_each(members, note_nodes, &nodes);
	cr_expect_eq(nodes, 2, "from a daemon of before");
	cluster_fini(&c);
}

Test(election, whoever_leads_next_gets_a_copy_and_nobody_else)
{
	struct cw_leader_stats stats;
	struct cluster c;
	unsigned holders = 0;

	cluster_init(&c, 4, 8);
	cluster_run(&c, 5);
	for (unsigned i = 0; i < 4; i++) {
		cw_leader_stats(c.nodes[i].leader, &stats);
		holders += stats.job_keys;
		cr_assert_eq(stats.jobs, (int)i == cluster_leader(&c));
	}
	cr_assert_eq(holders, 2, "%u", holders);
	cluster_fini(&c);
}

/* Takes in digests but never answers; beats all the same. */
static int swallow(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	++*(unsigned *)impl;
	return 0;
}

static int64_t fake_now(void *user)
{
	return *(int64_t *)user;
}

/* Counts digests to a leader; copies for the next one come too. */
static void count_digests(const char *from, struct cw_message **msg, void *user)
{
	*(unsigned *)user += (*msg)->type == CW_MSG_DIGEST;
}

Test(election, leader_that_never_answers_is_passed_over_though_it_beats)
{
	static const struct cw_transport_ops ops = { .send = swallow };
	int64_t now = 100 * CW_NS_PER_S;
	struct cw_clock clock = { .monotonic_ns = fake_now, .wall_ns = fake_now, .user = &now };
	const char *names[] = { "peer" };
	unsigned at_peer = 0, at_self = 0;
	struct cw_transport_config config = { .clock = &clock,
					      .self = "self",
					      .names = names,
					      .n_peers = 1,
					      .on_message = count_digests,
					      .user = &at_self };
	struct cw_msg_digest d = { .label = "job", .node = "self", .policy = "" };
	struct cw_leader_effects effects = { 0 };
	struct cw_transport *t;
	struct cw_election *m;

	cr_assert_eq(cw_transport_new(&config, &t), 0);
	transport_effects_init(&effects, t);
	cr_assert_eq(cw_election_new(&clock, "self", &effects, &m), 0);
	while (cw_election_weight(d.job_hash, "peer") <= cw_election_weight(d.job_hash, "self"))
		d.job_hash++;
	cw_transport_set_backend(t, &ops, &at_peer);
	cw_transport_peer_up(t, 0, 1);
	for (unsigned s = 0; s < 10; s++) {
		cr_assert_eq(cw_election_publish(m, &d), 0);
		now += CW_NS_PER_S;
		cw_transport_peer_seen(t, 0);
	}
	cr_assert_eq(at_peer, 10);
	cr_assert_str_eq(leader_of(m, d.label, d.uid), "peer");
	cr_assert_eq(cw_election_publish(m, &d), 0);
	cw_transport_run(t);
	cr_assert_eq(at_peer, 10);
	cr_assert_eq(at_self, 1);
	cr_assert_str_eq(leader_of(m, d.label, d.uid), "self");
	/* Later it gets another chance. */
	now += CW_LEADER_BAR_NS;
	cw_transport_peer_seen(t, 0);
	cr_assert_eq(cw_election_publish(m, &d), 0);
	cr_assert_eq(at_peer, 11);
	cw_election_free(m);
	cw_transport_free(t);
}
