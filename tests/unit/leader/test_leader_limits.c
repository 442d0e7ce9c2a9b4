/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader omits parts because one user would take too much: it counts them, and nothing
 * else suffers.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "identity/job_label.h"
#include "tests/support/cluster/leader_fixture.h"

#define JOBS (CW_LEADER_MAX_JOBS_PER_JOB_KEY + 3)
#define JOB_HASH 4711u

/* Of the digests that tests make up. */
static uint64_t digest_number;

TestSuite(leader_limits, .init = leader_setup, .fini = leader_teardown);

static struct network_node *leading(void)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	return &c.nodes[leader];
}

static struct cw_leader_stats stats_of(const struct network_node *n)
{
	struct cw_leader_stats stats;

	cw_leader_stats(n->leader, &stats);
	return stats;
}

/* Another user's ranks, each alone in a communicator of so many ranks. */
static void send_digest(struct network_node *n, uint32_t n_ranks, uint32_t nranks)
{
	static struct cw_msg_member members[JOBS];
	static struct cw_msg_rank ranks[JOBS];
	struct cw_message sent = { .type = CW_MSG_DIGEST,
				   .digest = { .job_hash = JOB_HASH,
					       .label = "many",
					       .uid = 2000,
					       .node = n->name,
					       .epoch = 1,
					       .number = 1,
					       .policy = "training",
					       .ranks = ranks,
					       .n_ranks = n_ranks } };

	for (uint32_t i = 0; i < n_ranks; i++) {
		members[i] = (struct cw_msg_member){
			.comm_id = 1 + i, .nranks = nranks, .name = "", .last_error = ""
		};
		ranks[i] = (struct cw_msg_rank){ .rank = -1,
						 .rank_source = "",
						 .pid = 4000 + (int32_t)i,
						 .uid = 2000,
						 .liveness = CW_LIVE_ALIVE,
						 .flags = CW_RANKF_HAS_RECORD,
						 .command = "",
						 .host_activity_by = "",
						 .cause_command = "",
						 .cause_group = "",
						 .members = &members[i],
						 .n_members = 1 };
	}
	leader_hear(n, &sent);
	(void)cw_leader_tick(n->leader);
}

Test(leader_limits, jobs_of_a_key_beyond_the_limit_are_counted)
{
	struct network_node *n = leading();

	send_digest(n, JOBS, 1);
	cr_expect_eq(stats_of(n).refused_jobs, 3);
	cr_expect_eq(stats_of(n).jobs, 1 + CW_LEADER_MAX_JOBS_PER_JOB_KEY);
}

Test(leader_limits, communicators_that_claim_to_be_huge_are_counted)
{
	struct network_node *n = leading();

	send_digest(n, 2, UINT32_MAX);
	cr_expect_eq(stats_of(n).comms_over_limit, 2);
	cr_expect_eq(stats_of(n).jobs, 3);
}

Test(leader_limits, nothing_is_counted_of_an_ordinary_job)
{
	struct network_node *n = leading();

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 30));
	cr_expect_eq(stats_of(n).refused_jobs, 0);
	cr_expect_eq(stats_of(n).comms_over_limit, 0);
	cr_expect_eq(stats_of(n).windows_over_limit, 0);
}

/* ---- places that users compete for ---- */

#define USERS 4u
#define JOBS_EACH (CW_LEADER_MAX_JOB_KEYS / USERS)

/* A job of one rank; only its label, its user and its number matter. */
static void send_digest_of(struct network_node *n, uint32_t uid, unsigned number)
{
	struct cw_msg_member member = {
		.comm_id = 1 + uid, .nranks = 1, .name = "", .last_error = ""
	};
	struct cw_msg_rank rank = { .rank = 0,
				    .world_size = 1,
				    .rank_source = "",
				    .pid = 4000,
				    .uid = uid,
				    .liveness = CW_LIVE_ALIVE,
				    .flags = CW_RANKF_HAS_RECORD,
				    .command = "",
				    .host_activity_by = "",
				    .cause_command = "",
				    .cause_group = "",
				    .nonfinite_input = "",
				    .members = &member,
				    .n_members = 1 };
	char label[64];
	struct cw_message sent = { .type = CW_MSG_DIGEST };

	(void)snprintf(label, sizeof(label), "job-%u-of-%u", number, uid);
	sent.digest = (struct cw_msg_digest){ .job_hash = cw_job_hash(label, uid),
					      .label = label,
					      .uid = uid,
					      .node = n->name,
					      .epoch = 1,
					      .number = ++digest_number,
					      .policy = "training",
					      .ranks = &rank,
					      .n_ranks = 1 };
	leader_hear(n, &sent);
}

struct led {
	uint32_t uid;
	const char *label; /* NULL = any */
	unsigned n;
};

static void count_led(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	struct led *led = user;

	led->n += digests->uid == led->uid && (!led->label || !strcmp(digests->label, led->label));
}

static unsigned n_led(const struct network_node *n, uint32_t uid, const char *label)
{
	struct led led = { .uid = uid, .label = label };

	cw_leader_jobs(n->leader, count_led, &led);
	return led.n;
}

static void fill_with_users(struct network_node *n)
{
	for (uint32_t uid = 1; uid <= USERS; uid++)
		for (unsigned i = 0; i < JOBS_EACH; i++)
			send_digest_of(n, 2000 + uid, i);
	(void)cw_leader_tick(n->leader);
}

Test(leader_limits, four_users_of_256_jobs_leave_a_place_for_a_fifth)
{
	struct network_node *n = leading();

	fill_with_users(n);
	send_digest_of(n, 3000, 0);
	(void)cw_leader_tick(n->leader);
	cr_expect_eq(n_led(n, 3000, NULL), 1);
	cr_expect_leq(stats_of(n).job_keys, CW_LEADER_MAX_JOB_KEYS);
}

Test(leader_limits, a_late_user_gets_its_quota)
{
	struct network_node *n = leading();

	fill_with_users(n);
	for (unsigned i = 0; i < JOBS_EACH; i++)
		send_digest_of(n, 3000, i);
	(void)cw_leader_tick(n->leader);
	/* Six users: the fixture's job has one of its own. */
	cr_expect_geq(n_led(n, 3000, NULL), CW_LEADER_MAX_JOB_KEYS / 6);
	cr_expect_leq(stats_of(n).job_keys, CW_LEADER_MAX_JOB_KEYS);
	cr_expect_eq(n_led(n, 1000, NULL), 1, "the fixture's job is still led");
}

Test(leader_limits, a_hang_that_is_told_keeps_its_place)
{
	struct network_node *n = leading();

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 30));
	/* Its user becomes the greediest; all other jobs of theirs are older than nothing. */
	for (unsigned i = 0; i < CW_LEADER_MAX_JOB_KEYS; i++)
		send_digest_of(n, 1000, i);
	for (uint32_t uid = 1; uid <= 600; uid++)
		send_digest_of(n, 2000 + uid, 0);
	(void)cw_leader_tick(n->leader);
	cr_expect_eq(n_led(n, 1000, "job-1"), 1);
	cr_expect_eq(n_led(n, 2600, NULL), 1);
	cluster_run(&c, 5);
	cr_expect_eq(c.n_alerts, 1);
}
