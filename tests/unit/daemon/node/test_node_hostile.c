/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that lie, flood or fall silent; beside each, a good agent that must not notice. */
#include "daemon/node/node.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/unixsock.h"
#include "daemon/agents/agents.h"
#include "model/snapshot.h"
#include "proto/codec.h"
#include "tests/support/node/node_fixture.h"

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

static bool nobody_is_connected(struct node_fixture *f, void *arg)
{
	return fixture_stats(f).connected == 0;
}

static bool no_more_are_open(struct node_fixture *f, void *arg)
{
	return open_descriptors() <= *(unsigned *)arg;
}

/* Closing some of them would hang the daemon, and so would reading what they came with. */
Test(node_hostile, descriptors_sent_by_strangers_end_the_connection_and_are_never_installed)
{
	struct node_fixture f;
	struct agent a;
	unsigned before;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &good, 'W');
	fixture_next_digest(&f);
	before = open_descriptors();
	agent_do(&f, &a, 'f');
	fixture_run_until(&f, nobody_is_connected, NULL, "its connection to end");
	fixture_run_until(&f, no_more_are_open, &before, "a child to close it");
	cr_assert_eq(fixture_stats(&f).bad_messages_total, 1);
	cr_assert_eq(fixture_stats(&f).processes, 1, "its record is still good");
	agent_stop(&a);
	fixture_stop(&f);
}

static bool one_connection_is_left(struct node_fixture *f, void *arg)
{
	return fixture_stats(f).deferred_total == *(uint64_t *)arg;
}

/* It needs one: a process that makes thousands has the last of them. */
Test(node_hostile, connections_of_one_process_make_room_for_each_other)
{
	enum { N = 40 }; /* 4 processes and 8 spare connections are allowed */
	uint64_t wanted = N - 1;
	struct node_fixture f;
	struct agent a;
	int fds[N];

	fixture_start(&f, 4, 4);
	for (int i = 0; i < N; i++) {
		fds[i] = cw_unix_connect(f.path, 1000);
		cr_assert_geq(fds[i], 0);
	}
	fixture_run_until(&f, one_connection_is_left, &wanted, "all but one to end");
	cr_assert_eq(fixture_stats(&f).refused_total, 0, "it may come again at once");
	a = agent_register(&f, &good, 'W');
	for (int i = 0; i < N; i++)
		close(fds[i]);
	agent_stop(&a);
	fixture_stop(&f);
}

static bool are_connected(struct node_fixture *f, void *arg)
{
	return fixture_stats(f).connected == *(uint32_t *)arg;
}

/* More than one child looks at together, and some of them twice. */
Test(node_hostile, agents_that_come_at_once_are_all_registered)
{
	enum { N = 40 };
	struct agent_options options = good;
	uint32_t wanted = N;
	struct node_fixture f;
	struct agent a[N];

	fixture_start(&f, 2 * N, 2 * N);
	for (int i = 0; i < N; i++) {
		options.rank = i;
		a[i] = agent_start(&f, &options);
		cr_assert_eq(write(a[i].to, "c", 1), 1);
	}
	fixture_run_until(&f, are_connected, &wanted, "all to be registered");
	cr_assert_eq(fixture_stats(&f).refused_total, 0);
	for (int i = 0; i < N; i++)
		agent_stop(&a[i]);
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
	cr_assert_fail("its opening was never reported");
}

struct socket_alone {
	struct event_base *base;
	struct cw_agents *agents;
	char dir[32], path[40];
	struct cw_agent_conn *greeted; /* its hello has come */
	bool has_time_passed;
};

static void keep_hello(struct cw_agent_conn *conn, const struct cw_msg_agent_hello *hello,
		       size_t frame_len, void *user)
{
	((struct socket_alone *)user)->greeted = conn;
}

static void socket_start(struct socket_alone *s, struct cw_agents_config config)
{
	struct cw_err err;

	*s = (struct socket_alone){ .base = event_base_new() };
	strcpy(s->dir, "/tmp/cw-agents-XXXXXX");
	cr_assert(mkdtemp(s->dir));
	cr_assert_eq(chmod(s->dir, 0755), 0);
	snprintf(s->path, sizeof(s->path), "%s/s", s->dir);
	config.base = s->base;
	config.clock = &cw_clock_system;
	config.daemon = "test";
	config.on_message = no_message;
	config.on_closed = no_close;
	config.user = s;
	config.listen_fd = cw_unix_listen(s->path, 0666, (gid_t)-1, &err);
	cr_assert_geq(config.listen_fd, 0);
	cr_assert_eq(cw_agents_new(&config, &s->agents), 0);
}

static void socket_stop(struct socket_alone *s)
{
	cw_agents_free(s->agents);
	event_base_free(s->base);
	unlink(s->path);
	rmdir(s->dir);
}

static struct cw_agents_stats socket_stats(const struct socket_alone *s)
{
	struct cw_agents_stats stats;

	cw_agents_stats(s->agents, &stats);
	return stats;
}

static void say_hello(int fd)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_HELLO,
				  .agent_hello = { CW_WIRE_VERSION_MIN, CW_WIRE_VERSION, 4096 } };
	uint8_t *bytes;
	size_t len;

	cr_assert_eq(cw_message_encode(&msg, &bytes, &len), 0);
	cr_assert_eq(send(fd, bytes, len, 0), (ssize_t)len);
	free(bytes);
}

static void on_time_passed(evutil_socket_t fd, short what, void *arg)
{
	((struct socket_alone *)arg)->has_time_passed = true;
}

Test(node_hostile, silence_after_connecting_ends_in_a_refusal)
{
	struct socket_alone s;
	int fd;

	socket_start(&s, (struct cw_agents_config){ .max_conns = 4,
						    .max_conns_per_uid = 4,
						    .hello_ms = 20,
						    .on_hello = no_hello });
	fd = cw_unix_connect(s.path, 1000);
	while (socket_stats(&s).refused == 0)
		cr_assert_geq(event_base_loop(s.base, EVLOOP_ONCE), 0);
	cr_assert_eq(socket_stats(&s).connections, 0);
	close(fd);
	socket_stop(&s);
}

/* The clock is the agent's: once its hello is there, it waits for the daemon. */
Test(node_hostile, a_hello_that_waits_for_the_daemon_is_not_refused)
{
	const struct timeval later = { .tv_usec = 200000 };
	struct socket_alone s;
	int fd;

	socket_start(&s, (struct cw_agents_config){ .max_conns = 4,
						    .max_conns_per_uid = 4,
						    .hello_ms = 20,
						    .on_hello = keep_hello });
	fd = cw_unix_connect(s.path, 1000);
	say_hello(fd);
	cr_assert_eq(event_base_once(s.base, -1, EV_TIMEOUT, on_time_passed, &s, &later), 0);
	while (!s.has_time_passed)
		cr_assert_geq(event_base_loop(s.base, EVLOOP_ONCE), 0);
	cr_assert(s.greeted);
	cr_assert_eq(socket_stats(&s).refused, 0);
	cr_assert_eq(socket_stats(&s).connections, 1);
	cw_agent_conn_admit(s.greeted);
	close(fd);
	socket_stop(&s);
}

/* Connects as that user, says hello or nothing, and stays until it is killed. */
static pid_t stranger(const struct socket_alone *s, uid_t uid, bool says_hello)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd;

		if (setgid(uid) < 0 || setuid(uid) < 0)
			_exit(1);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that failed leaves nothing */
		fd = cw_unix_connect(s->path, 1000);
		if (fd < 0)
			_exit(1);
		if (says_hello)
			say_hello(fd);
		for (;;)
			pause();
	}
	return pid;
}

/* One user's processes take all places; another's comes, and it is not the one to go. */
Test(node_hostile, a_flood_displaces_the_flood)
{
	enum { N = 8, FLOOD = 65001, OTHER = 65002 };
	struct socket_alone s;
	pid_t pids[N + 1];

	if (geteuid() != 0)
		cr_skip_test("needs root, to be several users");
	socket_start(&s, (struct cw_agents_config){ .max_conns = N,
						    .max_conns_per_uid = N,
						    .hello_ms = 60000,
						    .on_hello = keep_hello });
	for (int i = 0; i < N; i++)
		pids[i] = stranger(&s, FLOOD, false);
	while (socket_stats(&s).connections < N)
		cr_assert_geq(event_base_loop(s.base, EVLOOP_ONCE), 0);
	pids[N] = stranger(&s, OTHER, true);
	while (!s.greeted && socket_stats(&s).refused == 0)
		cr_assert_geq(event_base_loop(s.base, EVLOOP_ONCE), 0);
	cr_assert(s.greeted, "it was turned away");
	cr_assert_eq(cw_agent_conn_cred(s.greeted)->uid, OTHER);
	cr_assert_eq(socket_stats(&s).connections, N);
	cr_assert_eq(socket_stats(&s).refused, 0);
	for (int i = 0; i <= N; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	socket_stop(&s);
}

enum { SHE = 20011, HE = 20012 };

static pid_t fork_she(void)
{
	pid_t pid = fork();

	if (pid == 0 && setresuid(SHE, SHE, 0) < 0)
		_exit(99);
	return pid;
}

/* She registers, and then has the process run something as him, as sudo lets her. */
Test(node_hostile, a_process_that_has_become_another_users_is_his_alone)
{
	struct agent_options hers = {
		.rank = 0, .job = "job-a", .comm_id = 1, .fork = fork_she, .then_uid = HE
	};
	struct node_fixture f;
	struct agent a;

	if (geteuid() != 0)
		cr_skip_test("needs to be several users");
	fixture_start(&f, 8, 8);
	cr_assert_eq(chmod(f.dir, 0755), 0);
	a = agent_register(&f, &hers, 'W');
	fixture_next_digest(&f);
	cr_assert_eq(f.job.uid, SHE);
	cr_assert_eq(agent_do(&f, &a, 'u'), 'k');
	cr_assert_eq(agent_do(&f, &a, 'n'), 'k');
	cr_assert_eq(agent_do(&f, &a, 'c'), 'W');
	fixture_next_digest(&f);
	cr_assert_not_null(fixture_seen(&f, &a));
	cr_assert_eq(f.job.uid, HE, "his record is part of a job of uid %u", f.job.uid);
	cr_assert_eq(fixture_stats(&f).processes, 1);
	agent_stop(&a);
	fixture_stop(&f);
}
