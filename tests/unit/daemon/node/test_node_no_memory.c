/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's ranks where the daemon's memory runs out. An agent that the node could not take succeeds
 * the next time, and the next digest makes up for an incomplete one.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "model/snapshot.h"
#include "tests/support/memory/no_memory.h"
#include "tests/support/node/node_fixture.h"

#define WITHIN_NS (60 * CW_NS_PER_S)
/* In this time the node makes two digests. */
#define WALKED_NS (120 * CW_NS_PER_MS)

static const struct agent_options options = { .rank = 0, .job = "job-a", .comm_id = 0xc0ffee };

static struct node_fixture f;
static bool is_walked;
/* Of the last digest. */
static unsigned digests;
static uint32_t n_ranks, liveness;
static bool has_pending;

static void on_digest(const struct cw_msg_digest *digest, void *user)
{
	no_memory_end();
	digests++;
	n_ranks = digest->n_ranks;
	if (n_ranks == 1) {
		const struct cw_msg_rank *r = &digest->ranks[0];

		liveness = r->liveness;
		has_pending = r->n_members == 1 && r->members[0].pending;
	}
	if (is_walked)
		no_memory_begin();
}

/* One iteration of the loop, with memory that may run out. The node's timers end it in any case. */
static void iterate(void)
{
	if (is_walked)
		no_memory_begin();
	(void)event_base_loop(f.base, EVLOOP_ONCE); /* a failure in it is a failure of the node */
	no_memory_end();
}

static void run_until(bool (*done)(void *user), void *user, const char *what)
{
	int64_t end_ns = cw_clock_now_ns(&cw_clock_system) + WITHIN_NS;

	while (!done(user)) {
		iterate();
		cr_assert_lt(cw_clock_now_ns(&cw_clock_system), end_ns, "waited for %s", what);
	}
}

struct answer {
	struct agent *agent;
	char c;
};

static bool has_answered(void *user)
{
	struct answer *a = user;
	ssize_t n = read(a->agent->from, &a->c, 1);

	cr_assert(n == 1 || (n < 0 && errno == EAGAIN), "the agent died");
	return n == 1;
}

static char ask_agent(struct agent *agent, char command)
{
	struct answer a = { .agent = agent };

	cr_assert_eq(write(agent->to, &command, 1), 1);
	run_until(has_answered, &a, "the agent's answer");
	return a.c;
}

static void start(void)
{
	struct cw_err err;

	fixture_start(&f, 8, 8);
	cw_node_free(f.node);
	f.config.on_digest = on_digest;
	cr_assert_eq(cw_node_new(&f.config, &f.node, &err), 0, "%s", err.text);
	digests = n_ranks = 0;
	has_pending = false;
}

/* However often it was sent away: with memory it is taken. */
static void register_agent(struct agent *agent, char first)
{
	char answer = first;

	for (int i = 0; answer != 'W' && i < 20; i++)
		answer = ask_agent(agent, 'c');
	cr_assert_eq(answer, 'W');
}

static bool is_alive(void *user)
{
	return n_ranks == 1 && liveness == CW_LIVE_ALIVE;
}

static bool is_dead(void *user)
{
	return n_ranks == 1 && cw_liveness_is_dead(liveness);
}

static void registration(void *userdata)
{
	struct agent agent;
	char answer;

	start();
	agent = agent_start(&f, &options);
	is_walked = true;
	answer = ask_agent(&agent, 'c');
	is_walked = false;
	register_agent(&agent, answer);
	run_until(is_alive, NULL, "a digest with the rank");
	cr_assert_eq(fixture_stats(&f).processes, 1);
	/* The node took it with all descriptors that it needs to see its end. */
	cr_assert_eq(write(agent.to, "1", 1), 1);
	run_until(is_dead, NULL, "its death");
	agent_stop(&agent);
	fixture_stop(&f);
}

Test(node_no_memory, an_agent_that_was_sent_away_is_taken_the_next_time)
{
	no_memory_walk("registration", registration, NULL);
}

static bool reach(void *user)
{
	return digests >= *(unsigned *)user;
}

static bool sees_pending(void *user)
{
	return n_ranks == 1 && has_pending;
}

static void digest_rounds(void *userdata)
{
	unsigned wanted;
	int64_t end_ns;
	struct agent agent;

	start();
	agent = agent_start(&f, &options);
	register_agent(&agent, ask_agent(&agent, 'c'));
	run_until(is_alive, NULL, "a digest with the rank");
	cr_assert_eq(ask_agent(&agent, 'o'), 'k');
	wanted = digests + 2;
	end_ns = cw_clock_now_ns(&cw_clock_system) + WALKED_NS;
	is_walked = true;
	/* After a failure these digests may not come. */
	while (!reach(&wanted) &&
	       !(no_memory_happened() && cw_clock_now_ns(&cw_clock_system) > end_ns))
		iterate();
	is_walked = false;
	wanted = digests + 2;
	run_until(reach, &wanted, "two digests");
	run_until(sees_pending, NULL, "the rank's op");
	cr_assert_eq(fixture_stats(&f).processes, 1);
	agent_stop(&agent);
	fixture_stop(&f);
}

Test(node_no_memory, digests_go_on)
{
	no_memory_walk("digests", digest_rounds, NULL);
}

static void death(void *userdata)
{
	struct agent agent;
	siginfo_t end;

	start();
	agent = agent_start(&f, &options);
	register_agent(&agent, ask_agent(&agent, 'c'));
	run_until(is_alive, NULL, "a digest with the rank");
	cr_assert_eq(write(agent.to, "1", 1), 1);
	/* Turns are counted below: none of them may pass before there is a death to see. */
	cr_assert_eq(waitid(P_PID, (id_t)agent.pid, &end, WEXITED | WNOWAIT), 0);
	is_walked = true;
	for (int i = 0; i < 12; i++)
		iterate();
	is_walked = false;
	run_until(is_dead, NULL, "its death");
	agent_stop(&agent);
	fixture_stop(&f);
}

Test(node_no_memory, a_death_is_told_all_the_same)
{
	no_memory_walk("death", death, NULL);
}
