/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guarantees for two users' jobs with one key: we link this program with a key that is the same for
 * all jobs. The leader must find nothing by the key alone.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/node/digest_round.h"
#include "daemon/process/process.h"
#include "leader/election.h"
#include "tests/support/cluster/leader_fixture.h"

#define VICTIM 4242u
#define ATTACKER 4243u
#define LABEL_OF_VICTIM "name:victim"
#define LABEL_OF_ATTACKER "name:attacker"

/* By the linker, in the place of the real one. */
int __wrap_cw_job_key_make(uint32_t uid, const char *label, struct cw_job_key *ret);

int __wrap_cw_job_key_make(uint32_t uid, const char *label, struct cw_job_key *ret)
{
	(void)uid;
	(void)label;
	memset(ret->bytes, 0x55, sizeof(ret->bytes));
	return 0;
}

TestSuite(same_key, .init = leader_setup, .fini = leader_teardown);

static struct cw_job_id job_of(uint32_t uid, const char *label)
{
	struct cw_job_id job;

	cr_assert_eq(cw_job_id_make(uid, label, &job), 0);
	return job;
}

Test(same_key, it_is_the_same)
{
	struct cw_job_id a = job_of(VICTIM, LABEL_OF_VICTIM),
			 b = job_of(ATTACKER, LABEL_OF_ATTACKER);

	cr_assert(cw_job_key_is_equal(&a.key, &b.key));
	cr_assert_not(cw_job_id_is_equal(&a, &b));
}

/* One rank of a job of one. */
static struct cw_message digest_of(struct network_node *n, uint32_t uid, const char *label,
				   struct cw_msg_rank *rank)
{
	*rank = (struct cw_msg_rank){ .world_size = 1,
				      .rank_source = "RANK",
				      .pid = (int32_t)uid,
				      .uid = uid,
				      .liveness = CW_LIVE_ALIVE,
				      .flags = CW_RANKF_HAS_RECORD,
				      .command = "",
				      .host_activity_by = "",
				      .cause_command = "",
				      .cause_group = "" };
	return (struct cw_message){ .type = CW_MSG_DIGEST,
				    .digest = { .job_hash = 1,
						.label = label,
						.uid = uid,
						.node = n->name,
						.epoch = 1,
						.number = uid,
						.policy = "training",
						.ranks = rank,
						.n_ranks = 1 } };
}

static void count_jobs(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	if (digests->uid == VICTIM || digests->uid == ATTACKER) {
		cr_expect_str_eq(digests->label,
				 digests->uid == VICTIM ? LABEL_OF_VICTIM : LABEL_OF_ATTACKER);
		cr_expect_eq(job->view.ranks, 1);
		++*(unsigned *)user;
	}
}

Test(same_key, leader_keeps_two_jobs)
{
	struct network_node *n = &c.nodes[0];
	struct cw_msg_rank a, b;
	struct cw_message victim = digest_of(n, VICTIM, LABEL_OF_VICTIM, &a),
			  attacker = digest_of(n, ATTACKER, LABEL_OF_ATTACKER, &b);
	unsigned jobs = 0;

	leader_hear(n, &attacker);
	leader_hear(n, &victim);
	(void)cw_leader_tick(n->leader);
	cw_leader_jobs(n->leader, count_jobs, &jobs);
	cr_assert_eq(jobs, 2);
}

static void note_nodes(const struct cw_election_job *r, void *user)
{
	uint32_t *nodes = user;

	if (r->uid == VICTIM)
		nodes[0] = r->nodes;
	if (r->uid == ATTACKER)
		nodes[1] = r->nodes;
}

Test(same_key, answers_come_to_the_job_they_are_about)
{
	struct cw_election *m = c.nodes[0].election;
	struct cw_msg_rank a, b;
	struct cw_message victim = digest_of(&c.nodes[0], VICTIM, LABEL_OF_VICTIM, &a),
			  attacker = digest_of(&c.nodes[0], ATTACKER, LABEL_OF_ATTACKER, &b);
	struct cw_job_id job = job_of(VICTIM, LABEL_OF_VICTIM);
	struct cw_msg_members answer = {
		.job_key = job.key, .uid = job.uid, .label = job.label, .n_nodes_in_all = 7
	};
	uint32_t nodes[2] = { 0 };

	(void)cw_election_publish(m, &attacker.digest);
	(void)cw_election_publish(m, &victim.digest);
	cw_election_answer(m, cw_election_leader(m, &job), &answer);
	cw_election_each(m, note_nodes, nodes);
	cr_expect_eq(nodes[0], 7);
	cr_expect_eq(nodes[1], 0);
	/* Neither its number nor its hash makes it an answer about the attacker's job. */
	answer = (struct cw_msg_members){
		.job_hash = 1, .label = "", .number = ATTACKER, .n_nodes_in_all = 9
	};
	cw_election_answer(m, cw_election_leader(m, &job), &answer);
	cw_election_each(m, note_nodes, nodes);
	cr_expect_eq(nodes[0], 7);
	cr_expect_eq(nodes[1], 0);
	cr_expect_eq(cw_election_unnamed(m), 1, "refused and counted");
}

/* No user silences another user's alert by announcing one of her own first. */
Test(same_key, announcements_of_one_job_say_nothing_about_another)
{
	struct cw_leader *l = c.nodes[2].leader;
	struct cw_job_id victim = job_of(VICTIM, LABEL_OF_VICTIM),
			 attacker = job_of(ATTACKER, LABEL_OF_ATTACKER);
	struct cw_message of_attacker = { .type = CW_MSG_INCIDENT_ANNOUNCE,
					  .incident_announce = { .id = "1",
								 .node = "node-a",
								 .job_key = attacker.key,
								 .uid = attacker.uid,
								 .label = attacker.label } };
	struct cw_message of_victim = { .type = CW_MSG_INCIDENT_ANNOUNCE,
					.incident_announce = { .id = "2",
							       .node = "node-b",
							       .job_key = victim.key,
							       .uid = victim.uid,
							       .label = victim.label } };
	struct cw_message *m = &of_attacker;
	struct cw_transport_stats before, after;

	(void)cw_leader_message(l, "node-a", &m);
	cw_transport_stats(c.nodes[2].transport, &before);
	m = &of_victim;
	(void)cw_leader_message(l, "node-b", &m);
	cw_transport_stats(c.nodes[2].transport, &after);
	cr_assert_eq(after.sent, before.sent, "no objection");
	/* Of the same job, it does object. */
	(void)cw_leader_message(l, "node-a", &m);
	cw_transport_stats(c.nodes[2].transport, &after);
	cr_assert_eq(after.sent, before.sent + 1);
}

Test(same_key, an_announcement_that_names_no_job_is_refused_and_counted)
{
	struct cw_leader *l = c.nodes[2].leader;
	struct cw_message nameless = { .type = CW_MSG_INCIDENT_ANNOUNCE,
				       .incident_announce = { .id = "1",
							      .node = "node-a",
							      .job_hash = 1,
							      .uid = VICTIM,
							      .label = "" } };
	struct cw_message *m = &nameless;
	struct cw_transport_stats before, after;
	struct cw_leader_stats stats;

	cw_transport_stats(c.nodes[2].transport, &before);
	(void)cw_leader_message(l, "node-a", &m);
	(void)cw_leader_message(l, "node-b", &m);
	cw_transport_stats(c.nodes[2].transport, &after);
	cw_leader_stats(l, &stats);
	cr_assert_eq(after.sent, before.sent, "no objection");
	cr_assert_eq(stats.unnamed, 2);
}

/* ---- a node's processes ---- */

static struct cw_process process_of(const struct cw_job_id *job)
{
	struct cw_process p = { .key = { .pid = job->uid, .start_ticks = 1 },
				.uid = job->uid,
				.pidfd = -1,
				.proc_fd = -1,
				.job_key = job->key };

	memcpy(p.label, job->label, sizeof(p.label));
	return p;
}

Test(same_key, processes_are_of_their_own_job_alone)
{
	struct cw_job_id victim = job_of(VICTIM, LABEL_OF_VICTIM),
			 attacker = job_of(ATTACKER, LABEL_OF_ATTACKER),
			 namesake = job_of(ATTACKER, LABEL_OF_VICTIM);
	struct cw_process p = process_of(&victim);

	cr_assert(cw_process_is_of(&p, &victim));
	cr_assert_not(cw_process_is_of(&p, &attacker));
	cr_assert_not(cw_process_is_of(&p, &namesake));
	p.job_key = (struct cw_job_key){ 0 };
	cr_assert_not(cw_process_is_of(&p, &victim), "it has no job yet");
}
