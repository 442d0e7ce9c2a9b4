/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of rank processes that a node watches when users want more places than there are. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/process/process.h"
#include "identity/untracked.h"
#include "tests/support/node/node_fixture.h"

#define PLACES 6u
#define GREEDY_UID 20001u
#define LATE_UID 20002u

static pid_t fork_as(uid_t uid)
{
	pid_t pid = fork();

	if (pid == 0 && setresuid(uid, uid, uid) < 0)
		_exit(99);
	return pid;
}

static pid_t fork_greedy(void)
{
	return fork_as(GREEDY_UID);
}

static pid_t fork_late(void)
{
	return fork_as(LATE_UID);
}

static struct node_fixture f;
static struct agent agents[PLACES + 1];
static unsigned n_agents;

static void add_agent(const char *job, pid_t (*fork_fn)(void), char expected)
{
	const struct agent_options options = {
		.rank = (int32_t)n_agents, .job = job, .comm_id = 0xc0ffee, .fork = fork_fn
	};

	agents[n_agents++] = agent_register(&f, &options, expected);
}

/* One user has all places, the last of them with a job of its own. */
static void setup(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs to be several users");
	n_agents = 0;
	fixture_start(&f, PLACES, PLACES);
	cr_assert_eq(chmod(f.dir, 0755), 0);
	for (unsigned i = 0; i < PLACES; i++)
		add_agent(i < PLACES - 1 ? "first" : "second", fork_greedy, 'W');
}

static void teardown(void)
{
	if (geteuid() != 0)
		return;
	for (unsigned i = 0; i < n_agents; i++)
		agent_stop(&agents[i]);
	fixture_stop(&f);
}

TestSuite(node_quota, .init = setup, .fini = teardown);

struct noted {
	uint32_t uid;
	char label[64];
	unsigned n;
};

static void note(const struct cw_untracked_entry *entry, void *user)
{
	struct noted *noted = user;

	noted->n++;
	noted->uid = entry->uid;
	(void)snprintf(noted->label, sizeof(noted->label), "%s", entry->label);
}

static struct noted noted_now(void)
{
	struct noted noted = { 0 };

	cw_untracked_each(cw_node_untracked(f.node), note, &noted);
	return noted;
}

static bool is_told_of_untracked(struct node_fixture *fixture, void *arg)
{
	return fixture->untracked == 1;
}

Test(node_quota, the_youngest_gives_its_place_and_it_is_known_whose_it_was)
{
	struct noted noted;

	add_agent("late", fork_late, 'W');
	cr_expect_eq(fixture_stats(&f).processes, PLACES);
	cr_expect_eq(fixture_stats(&f).displaced_total, 1);
	noted = noted_now();
	cr_expect_eq(noted.n, 1);
	cr_expect_eq(noted.uid, GREEDY_UID);
	cr_expect_str_eq(noted.label, "second");
	/*
	 * Its leader may see other ranks of the job: the digest lists the ranks that are
	 * invisible here.
	 */
	fixture_run_until(&f, is_told_of_untracked, NULL, "a digest of the job without ranks");
	cr_expect_str_eq(f.untracked_label, "second");
	cr_expect_eq(f.untracked_ranks, 0);
}

Test(node_quota, who_is_at_its_quota_is_refused_and_noted)
{
	struct noted noted;

	add_agent("third", fork_greedy, 'R');
	noted = noted_now();
	cr_expect_eq(noted.n, 1);
	cr_expect_str_eq(noted.label, "third");
	cr_expect_eq(fixture_stats(&f).over_quota_total, 1);
}

static bool is_nothing_noted(struct node_fixture *fixture, void *arg)
{
	return cw_untracked_count(cw_node_untracked(fixture->node)) == 0;
}

static bool is_one_dead(struct node_fixture *fixture, void *arg)
{
	return fixture_stats(fixture).dead == 1;
}

Test(node_quota, an_end_makes_a_place_and_who_comes_back_is_watched)
{
	add_agent("late", fork_late, 'W');
	cr_assert_eq(noted_now().n, 1);
	/* The late one leaves, and its dead record is the first to go. */
	(void)agent_do(&f, &agents[PLACES], '0');
	fixture_run_until(&f, is_one_dead, NULL, "the late one's end");
	(void)agent_do(&f, &agents[PLACES - 1], 'd');
	cr_expect_eq(agent_do(&f, &agents[PLACES - 1], 'c'), 'R', "a dead rank keeps its place");
	fixture_skip_ns(CW_PROCESS_KEEP_DEAD_NS);
	fixture_next_digest(&f);
	cr_expect_eq(agent_do(&f, &agents[PLACES - 1], 'c'), 'W');
	cr_expect_eq(noted_now().n, 0);
}

Test(node_quota, one_that_ends_is_not_missed_any_more)
{
	add_agent("third", fork_greedy, 'R');
	(void)agent_do(&f, &agents[PLACES], '0');
	fixture_run_until(&f, is_nothing_noted, NULL, "the end of what was not watched");
}

static bool greedy_has_one(const struct cw_job_id *job, void *user)
{
	return job->uid == GREEDY_UID;
}

Test(node_quota, ranks_of_a_job_with_an_open_incident_keep_their_places)
{
	fixture_stop(&f);
	for (unsigned i = 0; i < n_agents; i++)
		agent_stop(&agents[i]);
	n_agents = 0;
	fixture_start(&f, PLACES, PLACES);
	cr_assert_eq(chmod(f.dir, 0755), 0);
	f.config.has_incident = greedy_has_one;
	fixture_restart(&f);
	for (unsigned i = 0; i < PLACES; i++)
		add_agent("first", fork_greedy, 'W');
	add_agent("late", fork_late, 'R');
	cr_expect_eq(noted_now().uid, LATE_UID);
}
