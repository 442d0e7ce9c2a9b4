/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that lie, flood or fall silent; beside each, a good agent that must not notice. */
#include "daemon/node.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "analysis/snapshot.h"
#include "common/unixsock.h"
#include "daemon/agents.h"
#include "tests/unit/node_fixture.h"

static const struct agent_options good = { .rank = 0, .job = "job-a", .comm_id = 1 };

static const struct {
	enum agent_flaw flaw;
	const char *name;
} flaws[] = {
	{ AGENT_UNSEALED, "unsealed record" },  { AGENT_NO_FD, "no descriptor" },
	{ AGENT_NOT_MAPPED, "not mapped" },     { AGENT_NO_RECORD, "not a record" },
	{ AGENT_TOO_NEW, "unknown version" },   { AGENT_GARBAGE, "garbage" },
	{ AGENT_HUGE_FRAME, "huge frame" },     { AGENT_WRONG_FIRST, "no hello first" },
	{ AGENT_NEWER_RECORD, "newer record" },
};

Test(node_hostile, bad_registrations_are_refused_and_counted)
{
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &good, 'W');
	for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
		struct agent_options bad = {
			.rank = 1, .job = "job-a", .comm_id = 1, .flaw = flaws[i].flaw
		};
		uint64_t refused = fixture_stats(&f).refused_total;
		struct agent b = agent_start(&f, &bad);

		cr_assert_eq(agent_do(&f, &b, 'c'), 'R', "%s", flaws[i].name);
		cr_assert_eq(fixture_stats(&f).refused_total, refused + 1, "%s", flaws[i].name);
		cr_assert_eq(fixture_stats(&f).processes, 1, "%s", flaws[i].name);
		agent_stop(&b);
	}
	fixture_next_digest(&f);
	cr_assert(fixture_seen(&f, &a));
	cr_assert_eq(fixture_stats(&f).connected, 1);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node_hostile, nonsense_from_an_admitted_agent_ends_its_connection_only)
{
	struct agent_options other = { .rank = 1, .job = "job-a", .comm_id = 1 };
	struct node_fixture f;
	struct agent a, b;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &good, 'W');
	b = agent_register(&f, &other, 'W');
	cr_assert_eq(agent_do(&f, &b, 'm'), 'X');
	cr_assert_gt(fixture_stats(&f).bad_messages_total, 50);
	cr_assert_eq(fixture_stats(&f).connected, 1);
	cr_assert_eq(fixture_stats(&f).processes, 2, "its record is still good");
	agent_stop(&a);
	agent_stop(&b);
	fixture_stop(&f);
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Closing some of them would hang the daemon. */
Test(node_hostile, descriptors_sent_by_strangers_are_never_installed)
{
	struct node_fixture f;
	struct agent a;
	unsigned before;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &good, 'W');
	fixture_next_digest(&f);
	before = open_descriptors();
	agent_do(&f, &a, 'f');
	fixture_next_digest(&f);
	cr_assert_eq(open_descriptors(), before);
	cr_assert_eq(fixture_stats(&f).connected, 1);
	agent_stop(&a);
	fixture_stop(&f);
}

static bool refused_reaches(struct node_fixture *f, void *arg)
{
	return fixture_stats(f).refused_total >= *(uint64_t *)arg;
}

Test(node_hostile, connections_are_limited_and_make_room_again)
{
	enum { N = 40 }; /* 4 processes and 8 spare connections are allowed */
	uint64_t wanted = N - 12;
	struct node_fixture f;
	struct agent a;
	int fds[N];

	fixture_start(&f, 4, 4);
	for (int i = 0; i < N; i++) {
		fds[i] = cw_unix_connect(f.path, 1000);
		cr_assert_geq(fds[i], 0);
	}
	fixture_run_until(&f, refused_reaches, &wanted, "refusals");
	cr_assert_eq(fixture_stats(&f).refused_total, wanted);
	for (int i = 0; i < N; i++)
		close(fds[i]);
	/* The ends are there to be read: one turn for each is more than enough. */
	for (int i = 0; i < N; i++)
		cr_assert_geq(event_base_loop(f.base, EVLOOP_NONBLOCK), 0);
	a = agent_register(&f, &good, 'W');
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node_hostile, processes_are_limited_per_user_and_the_dead_make_room)
{
	struct agent_options options = good;
	struct node_fixture f;
	struct agent a, b, c;

	fixture_start(&f, 8, 2);
	a = agent_register(&f, &options, 'W');
	options.rank = 1;
	b = agent_register(&f, &options, 'W');
	options.rank = 2;
	c = agent_register(&f, &options, 'R');
	kill(a.pid, SIGKILL);
	while (fixture_stats(&f).dead == 0)
		cr_assert_geq(event_base_loop(f.base, EVLOOP_ONCE), 0);
	cr_assert_eq(agent_do(&f, &c, 'c'), 'W');
	cr_assert_eq(fixture_stats(&f).processes, 2);
	cr_assert_eq(fixture_stats(&f).dead, 0);
	agent_stop(&a);
	agent_stop(&b);
	agent_stop(&c);
	fixture_stop(&f);
}

/* ---- the socket alone, with a short deadline ---- */

static void no_hello(struct cw_agent_conn *conn, const struct cw_msg_agent_hello *hello,
		     size_t frame_len, void *user)
{
	cr_assert_fail("there was no hello");
}

static void no_message(struct cw_agent_conn *conn, const struct cw_message *msg, void *user)
{
	cr_assert_fail("there was no message");
}

static void no_close(struct cw_agent_conn *conn, void *user)
{
	cr_assert_fail("nobody was told about it");
}

Test(node_hostile, silence_after_connecting_ends_in_a_refusal)
{
	struct event_base *base = event_base_new();
	char path[] = "/tmp/cw-agents-XXXXXX/s";
	struct cw_agents_config config = {
		.base = base,
		.daemon = "test",
		.max_conns = 4,
		.max_conns_per_uid = 4,
		.hello_ms = 20,
		.on_hello = no_hello,
		.on_message = no_message,
		.on_closed = no_close,
	};
	struct cw_agents_stats stats;
	struct cw_agents *agents;
	struct cw_err err;
	int fd;

	path[sizeof("/tmp/cw-agents-XXXXXX") - 1] = '\0';
	cr_assert(mkdtemp(path));
	path[sizeof("/tmp/cw-agents-XXXXXX") - 1] = '/';
	config.listen_fd = cw_unix_listen(path, 0666, (gid_t)-1, &err);
	cr_assert_geq(config.listen_fd, 0);
	cr_assert_eq(cw_agents_new(&config, &agents), 0);
	fd = cw_unix_connect(path, 1000);
	do {
		cr_assert_geq(event_base_loop(base, EVLOOP_ONCE), 0);
		cw_agents_stats(agents, &stats);
	} while (stats.refused == 0);
	cr_assert_eq(stats.connections, 0);
	close(fd);
	cw_agents_free(agents);
	event_base_free(base);
	unlink(path);
	path[sizeof("/tmp/cw-agents-XXXXXX") - 1] = '\0';
	rmdir(path);
}
