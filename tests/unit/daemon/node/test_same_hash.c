/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two users' jobs with one job_hash: tests/attack/label_collision.c found the labels. Jobs of the
 * same job_hash are not the same job.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "identity/job_label.h"
#include "leader/election.h"

#define VICTIM 4242u
#define ATTACKER 4243u
#define LABEL_OF_VICTIM "name:llama-70b-pretrain"
#define LABEL_OF_ATTACKER "name:VwCoIZYcquNrjKFsDu7gbE"

static int send_nothing(void *user, const char *node, const struct cw_message *msg)
{
	return 0;
}

static const struct cw_peer *no_peers(void *user, unsigned *ret_n)
{
	*ret_n = 0;
	return NULL;
}

static const struct cw_leader_effects effects = { .send = send_nothing, .peers = no_peers };

Test(same_hash, the_labels_were_found)
{
	cr_assert_eq(cw_job_hash(LABEL_OF_VICTIM, VICTIM),
		     cw_job_hash(LABEL_OF_ATTACKER, ATTACKER));
}

static void note(const struct cw_election_job *r, void *user)
{
	uint32_t *ranks = user;

	if (r->uid == VICTIM && !strcmp(r->label, LABEL_OF_VICTIM))
		ranks[0] = r->ranks_here;
	if (r->uid == ATTACKER && !strcmp(r->label, LABEL_OF_ATTACKER))
		ranks[1] = r->ranks_here;
}

Test(same_hash, node_publishes_two_jobs)
{
	struct cw_election *m;
	struct cw_msg_rank rank[2] = {
		{ .rank_source = "", .command = "", .host_activity_by = "" },
		{ .rank_source = "", .command = "", .host_activity_by = "" }
	};
	struct cw_msg_digest d = { .job_hash = cw_job_hash(LABEL_OF_ATTACKER, ATTACKER),
				   .label = LABEL_OF_ATTACKER,
				   .uid = ATTACKER,
				   .node = "node",
				   .number = 1,
				   .policy = "",
				   .ranks = rank,
				   .n_ranks = 1 };
	uint32_t ranks[2] = { 0 };

	cr_assert_eq(cw_election_new(&cw_clock_system, "node", &effects, &m), 0);
	cr_assert_eq(cw_election_publish(m, &d), 0);
	d.label = LABEL_OF_VICTIM;
	d.uid = VICTIM;
	d.number = 2;
	d.n_ranks = 2;
	cr_assert_eq(cw_election_publish(m, &d), 0);
	cw_election_each(m, note, ranks);
	cr_expect_eq(ranks[0], 2, "the victim's job is not known");
	cr_expect_eq(ranks[1], 1, "the attacker's job is not known as it was");
	cw_election_free(m);
}
