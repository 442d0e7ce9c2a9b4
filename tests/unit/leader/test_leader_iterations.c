/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations of more memberships than a leader takes in one iteration of the loop. */
#include <criterion/criterion.h>

#include "tests/support/cluster/cluster_job.h"
#include "tests/support/cluster/leader_fixture.h"

#define MANY_ITERATIONS 16

/* A cluster whose leaders evaluate one membership an iteration: each evaluation is split. */
static void setup(void)
{
	leader_setup();
	c.iteration_members = 1;
	for (unsigned i = 0; i < 3; i++)
		cluster_restart(&c, i);
	cluster_run(&c, 5);
}

TestSuite(leader_iterations, .init = setup, .fini = leader_teardown);

static struct network_node *leading(void)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	return &c.nodes[leader];
}

static uint64_t n_parted(const struct network_node *n)
{
	struct cw_leader_stats stats;

	cw_leader_stats(n->leader, &stats);
	return stats.split_evaluations;
}

/* Until the leader has made a snapshot that it has not judged. */
static struct network_node *run_until_deferred(void)
{
	struct network_node *n = leading();
	uint64_t before = n_parted(n);

	for (unsigned i = 0; i < 100 && n_parted(n) == before; i++)
		cluster_run(&c, 0.05);
	cr_assert_gt(n_parted(n), before);
	return n;
}

static const struct cluster_alert *alert_of(struct cluster *cluster, enum cluster_fault fault)
{
	cluster_fault(cluster, fault, 4);
	cr_assert(cluster_run_until_alert(cluster, 30));
	return &cluster->alerts[0];
}

static const char *text(const struct cluster_alert *a, const char *key)
{
	return json_string_value(json_object_get(a->doc, key));
}

static void expect_same_alert(enum cluster_fault fault)
{
	const struct cluster_alert *split, *whole;
	struct cluster other;
	int64_t since_ns;

	cluster_init(&other, 3, 9);
	cluster_run(&other, 5);
	(void)run_until_deferred();
	split = alert_of(&c, fault);
	whole = alert_of(&other, fault);
	cr_expect_str_eq(split->verdict_class, whole->verdict_class);
	cr_expect_eq(split->culprit, whole->culprit);
	cr_expect_str_eq(text(split, "detail"), text(whole, "detail"));
	cr_expect_str_eq(text(split, "confidence"), text(whole, "confidence"));
	since_ns = split->at_ns - c.fault_ns - (whole->at_ns - other.fault_ns);
	cr_expect_lt(since_ns, 2 * CW_NS_PER_S);
	cluster_run(&c, 60);
	cr_expect_eq(c.n_alerts, 1);
	cluster_fini(&other);
}

Test(leader_iterations, rank_that_never_entered_is_told_as_in_one_iteration)
{
	expect_same_alert(FAULT_NEVER_ENTERED);
}

Test(leader_iterations, mismatch_is_told_as_in_one_iteration)
{
	expect_same_alert(FAULT_MISMATCH);
}

Test(leader_iterations, wrong_operator_is_told_as_in_one_iteration)
{
	expect_same_alert(FAULT_WRONG_REDOP);
}

Test(leader_iterations, killed_rank_is_told_as_in_one_iteration)
{
	expect_same_alert(FAULT_KILLED);
}

static bool is_writing(const struct network_node *n)
{
	return cw_job_incidents_are_writing(&cluster_job(&c, n->index)->incidents);
}

Test(leader_iterations, snapshot_of_an_incident_is_written_a_piece_an_iteration)
{
	struct network_node *n = leading();
	unsigned iterations = 0;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	for (unsigned i = 0; i < 600 && !is_writing(n); i++)
		cluster_run(&c, 0.05);
	cr_assert(is_writing(n));
	cr_assert_eq(n->store.puts, 0);
	for (; iterations < 100 && is_writing(n); iterations++)
		cluster_run(&c, 0.05);
	cr_expect_geq(iterations, 9, "nine ranks and as many memberships, not in %u iterations",
		      iterations);
	cr_expect_not(is_writing(n));
	cr_assert(cluster_run_until_alert(&c, 30)); /* its bundle has the snapshot: cluster.c */
}

Test(leader_iterations, leader_may_be_freed_while_it_writes)
{
	struct network_node *n = leading();

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	for (unsigned i = 0; i < 600 && !is_writing(n); i++)
		cluster_run(&c, 0.05);
	cr_assert(is_writing(n));
	n->leader = cw_leader_free(n->leader);
}

Test(leader_iterations, healthy_job_stays_healthy)
{
	cluster_run(&c, 60);
	cr_expect_eq(c.n_alerts, 0);
	cr_expect_eq(cluster_job(&c, (unsigned)cluster_leader(&c))->view.ranks, 9);
}

/* Three ranks a node. */
static unsigned rank_on(const struct network_node *n)
{
	return 3 * n->index;
}

Test(leader_iterations, digest_that_comes_between_the_iterations_counts_from_the_next_evaluation_on)
{
	struct network_node *n = run_until_deferred();
	const struct cw_job *job = cluster_job(&c, n->index);

	cluster_fault(&c, FAULT_KILLED, rank_on(n));
	cluster_job_publish(&c, n);
	cw_transport_run(n->transport);
	cr_assert(cw_leader_continue(n->leader), "the death is another reason to evaluate");
	cr_expect_eq(job->view.verdict_class, CW_CLASS_HEALTHY);
	for (unsigned i = 0; i < MANY_ITERATIONS && cw_leader_continue(n->leader); i++)
		;
	cr_expect_eq(job->view.verdict_class, CW_CLASS_PROCESS_DEAD);
}

Test(leader_iterations, leader_may_be_freed_between_the_iterations)
{
	struct network_node *n = run_until_deferred();

	n->leader = cw_leader_free(n->leader);
}

/* One rank that is alone in two communicators. */
static void send_digest_of(struct network_node *n, uint64_t job_hash)
{
	struct cw_msg_member members[2] = {
		{ .comm_id = job_hash, .nranks = 1, .name = "a", .last_error = "" },
		{ .comm_id = job_hash + 1, .nranks = 1, .name = "b", .last_error = "" },
	};
	struct cw_msg_rank rank = { .rank = 0,
				    .world_size = 1,
				    .rank_source = "RANK",
				    .pid = 4000,
				    .start_ticks = job_hash,
				    .uid = 1000,
				    .liveness = CW_LIVE_ALIVE,
				    .flags = CW_RANKF_HAS_RECORD,
				    .command = "",
				    .host_activity_by = "",
				    .cause_command = "",
				    .cause_group = "",
				    .members = members,
				    .n_members = 2 };
	char label[16];
	struct cw_message sent = { .type = CW_MSG_DIGEST,
				   .digest = { .job_hash = job_hash,
					       .label = label,
					       .uid = 1000,
					       .node = n->name,
					       .epoch = 1,
					       .number = 1,
					       .policy = "training",
					       .ranks = &rank,
					       .n_ranks = 1 } };

	(void)snprintf(label, sizeof(label), "small-%u", (unsigned)job_hash);
	leader_hear(n, &sent);
}

static void count_seen(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	*(unsigned *)user += job->view.ranks > 0;
}

Test(leader_iterations, jobs_beyond_the_share_of_an_iteration_are_evaluated_in_the_next_ones)
{
	struct network_node *n = run_until_deferred();
	struct cw_leader_stats before, after;
	unsigned n_iterations = 0, n_seen = 0;

	for (uint64_t job_hash = 100; job_hash < 300; job_hash += 100)
		send_digest_of(n, job_hash);
	cw_leader_stats(n->leader, &before);
	while (cw_leader_continue(n->leader) && n_iterations < MANY_ITERATIONS)
		n_iterations++;
	cw_leader_stats(n->leader, &after);
	cr_expect_geq(n_iterations, 2);
	cr_expect_lt(n_iterations, MANY_ITERATIONS);
	cr_expect_eq(after.evaluations - before.evaluations, 3);
	cw_leader_jobs(n->leader, count_seen, &n_seen);
	cr_expect_eq(n_seen, 3);
}

/* So many ranks, each alone in a communicator with itself: as many jobs. */
#define N_SMALL 5

static void send_digest_of_many(struct network_node *n)
{
	struct cw_msg_member members[N_SMALL];
	struct cw_msg_rank ranks[N_SMALL];
	struct cw_message sent = { .type = CW_MSG_DIGEST,
				   .digest = { .job_hash = 77,
					       .label = "many",
					       .uid = 1000,
					       .node = n->name,
					       .epoch = 1,
					       .number = 1,
					       .policy = "training",
					       .ranks = ranks,
					       .n_ranks = N_SMALL } };

	for (unsigned i = 0; i < N_SMALL; i++) {
		members[i] = (struct cw_msg_member){
			.comm_id = 700 + i, .nranks = 1, .name = "a", .last_error = ""
		};
		ranks[i] = (struct cw_msg_rank){ .rank = 0,
						 .world_size = 1,
						 .rank_source = "RANK",
						 .pid = (int32_t)(5000 + i),
						 .start_ticks = 5,
						 .uid = 1000,
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
}

/* Each has one membership, which is an iteration's share. */
Test(leader_iterations, jobs_of_one_key_are_evaluated_one_an_iteration)
{
	struct network_node *n = run_until_deferred();
	struct cw_leader_stats last, stats;
	unsigned n_iterations = 0, n_seen = 0;
	bool has_more;

	send_digest_of_many(n);
	cw_leader_stats(n->leader, &last);
	do {
		has_more = cw_leader_continue(n->leader);
		cw_leader_stats(n->leader, &stats);
		cr_expect_leq(stats.evaluations - last.evaluations, 1, "in iteration %u",
			      n_iterations);
		last = stats;
	} while (has_more && ++n_iterations < MANY_ITERATIONS);
	cr_expect_lt(n_iterations, MANY_ITERATIONS);
	cw_leader_jobs(n->leader, count_seen, &n_seen);
	cr_expect_eq(n_seen, N_SMALL + 1);
}

/* A quarter of the time, as for looks: the leader still reads messages that come meanwhile. */
Test(leader_iterations, text_of_a_snapshot_takes_a_quarter_of_the_time)
{
	struct network_node *n = leading();
	unsigned pieces = 0;

	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	for (unsigned i = 0; i < 600 && !is_writing(n); i++)
		cluster_run(&c, 0.05);
	cr_assert(is_writing(n));
	cluster_run(&c, 0.5);
	c.evaluation_cost_ns = CW_NS_PER_S / 32; /* half of a quarter of 250 ms */
	(void)cw_leader_tick(n->leader);
	while (cw_leader_continue(n->leader) && pieces < MANY_ITERATIONS)
		pieces++;
	cr_expect_leq(pieces, 4);
	cr_expect(is_writing(n), "the rest has to wait for the next quarter of a second");
	c.evaluation_cost_ns = 0;
	cluster_run(&c, 10);
	cr_expect_not(is_writing(n));
}
