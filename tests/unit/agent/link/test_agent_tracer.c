/* SPDX-License-Identifier: Apache-2.0 */
/* Needs no Yama: its file is one of the test's own. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/link/tracer.h"

#define NOBODY 65534

static char dir[] = "/tmp/cw-tracer-XXXXXX";
static char scope[64];
static struct sockaddr_un addr = { .sun_family = AF_UNIX };
static pid_t daemon_pid;

static void write_scope(const char *text)
{
	FILE *f = fopen(scope, "we");

	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
}

/* As a daemon: listens, tells that it does, and stays until it is killed. */
static void listen_as(uid_t uid, int ready)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || setuid(uid) < 0 ||
	    listen(fd, 4) < 0 || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

static int connected_to(uid_t uid)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ready[2];
	char byte;

	cr_assert_eq(pipe(ready), 0);
	daemon_pid = fork();
	cr_assert(daemon_pid >= 0);
	if (daemon_pid == 0)
		listen_as(uid, ready[1]);
	(void)close(ready[1]);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(scope, sizeof(scope), "%s/ptrace_scope", dir);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	write_scope("1\n");
}

static void teardown(void)
{
	if (daemon_pid > 0) {
		(void)kill(daemon_pid, SIGKILL);
		(void)waitpid(daemon_pid, NULL, 0);
	}
	(void)unlink(scope);
	(void)unlink(addr.sun_path);
	(void)rmdir(dir);
}

TestSuite(agent_tracer, .init = setup, .fini = teardown);

Test(agent_tracer, a_daemon_of_the_same_user_is_named)
{
	int fd = connected_to(getuid());

	cr_assert_eq(cw_tracer_wanted(fd, scope), daemon_pid);
	write_scope("1");
	cr_assert_eq(cw_tracer_wanted(fd, scope), daemon_pid);
}

Test(agent_tracer, nobody_is_named_where_a_name_changes_nothing)
{
	static const char *const others[] = {
		"0\n", "2\n", "3\n", "", "\n", "10\n", "1 0", "-1\n"
	};
	int fd = connected_to(getuid());

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		write_scope(others[i]);
		cr_assert_eq(cw_tracer_wanted(fd, scope), 0, "scope \"%s\"", others[i]);
	}
	(void)unlink(scope);
	cr_assert_eq(cw_tracer_wanted(fd, scope), 0, "no Yama");
}

Test(agent_tracer, a_daemon_of_another_user_is_never_named)
{
	if (getuid() != 0)
		cr_skip("needs root");
	cr_assert_eq(cw_tracer_wanted(connected_to(NOBODY), scope), 0);
}

/* One user for another: ptrace() would compare with each of the three. */
Test(agent_tracer, a_program_that_has_changed_its_user_names_nobody)
{
	int fd;

	if (getuid() != 0)
		cr_skip("needs root");
	fd = connected_to(0);
	cr_assert_eq(setresuid(NOBODY, 0, 0), 0);
	cr_assert_eq(cw_tracer_wanted(fd, scope), 0, "real");
	cr_assert_eq(setresuid(0, 0, NOBODY), 0);
	cr_assert_eq(cw_tracer_wanted(fd, scope), 0, "saved");
	cr_assert_eq(setresuid(0, 0, 0), 0);
	cr_assert_eq(cw_tracer_wanted(fd, scope), daemon_pid);
}

Test(agent_tracer, what_is_no_connection_names_nobody)
{
	int pair[2], plain = open(scope, O_RDONLY | O_CLOEXEC);

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_assert_eq(cw_tracer_wanted(pair[0], scope), 0, "ourselves");
	cr_assert_eq(cw_tracer_wanted(plain, scope), 0, "a file");
	cr_assert_eq(cw_tracer_wanted(-1, scope), 0, "nothing");
}
