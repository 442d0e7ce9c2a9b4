/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/sd_notify.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_un address;
static int manager = -1;

/* In the abstract namespace: '@' in the environment, a zero byte for the kernel. */
static void listen_for_words(void)
{
	char name[64];
	int len = snprintf(name, sizeof(name), "@cw-notify-%d", (int)getpid());

	address.sun_family = AF_UNIX;
	memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(manager, (struct sockaddr *)&address,
			  (socklen_t)(sizeof(sa_family_t) + (size_t)len)),
		     0);
	setenv("NOTIFY_SOCKET", name, 1);
}

static void expect_words(const char *wanted)
{
	char got[2048];
	ssize_t n = recv(manager, got, sizeof(got) - 1, MSG_DONTWAIT);

	cr_assert_geq(n, 0, "nothing, instead of '%s'", wanted);
	got[n] = '\0';
	cr_expect_str_eq(got, wanted);
}

Test(sd_notify, tells_the_manager, .init = listen_for_words)
{
	cw_notify_ready("watching");
	expect_words("READY=1\nSTATUS=watching");
	cw_notify_status("3 jobs");
	expect_words("STATUS=3 jobs");
	cw_notify_reloading(12345678);
	expect_words("RELOADING=1\nMONOTONIC_USEC=12345");
	cw_notify_alive();
	expect_words("WATCHDOG=1");
	cw_notify_stopping();
	expect_words("STOPPING=1");
}

Test(sd_notify, is_silent_without_a_manager)
{
	unsetenv("NOTIFY_SOCKET");
	cw_notify_ready("watching");
	setenv("NOTIFY_SOCKET", "/nowhere/socket", 1);
	cw_notify_ready("watching");
}

static void set_pid(const char *name, int more)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", (int)getpid() + more);
	setenv(name, text, 1);
}

Test(sd_notify, has_a_watchdog_only_where_it_is_meant)
{
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	cr_expect_eq(cw_notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	cr_expect_eq(cw_notify_watchdog_ns(), 30000000000);
	set_pid("WATCHDOG_PID", 0);
	cr_expect_eq(cw_notify_watchdog_ns(), 30000000000);
	set_pid("WATCHDOG_PID", 1);
	cr_expect_eq(cw_notify_watchdog_ns(), 0);
	set_pid("WATCHDOG_PID", 0);
	setenv("WATCHDOG_USEC", "18446744073709551615", 1);
	cr_expect_eq(cw_notify_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "-1", 1);
	cr_expect_eq(cw_notify_watchdog_ns(), 0);
}

/* Only a child can have 3 and 4. Its exit status: 0, or the line that failed. */
#define NEED(claim) ((claim) ? (void)0 : _exit(__LINE__ % 255 + 1))

static void take_two(int pid_off_by, const char *n, const char *names)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), file = open("/dev/null", O_RDONLY);

	listener = fcntl(listener, F_DUPFD, 10);
	file = fcntl(file, F_DUPFD, 10);
	NEED(bind(listener, (struct sockaddr *)&any, sizeof(sa_family_t)) == 0); /* any name */
	NEED(listen(listener, 1) == 0);
	NEED(dup2(file, 3) == 3 && dup2(listener, 4) == 4);
	set_pid("LISTEN_PID", pid_off_by);
	setenv("LISTEN_FDS", n, 1);
	setenv("LISTEN_FDNAMES", names, 1);
}

static void in_a_child(void (*check)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		check();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "line %d", status / 256 - 1);
}

static void takes_what_was_passed(void)
{
	struct cw_passed_fd *list;
	size_t n;

	take_two(0, "2", "rank-1.0:control");
	NEED(cw_notify_listen_fd("control") == 4);
	NEED((fcntl(4, F_GETFD) & FD_CLOEXEC) && (fcntl(3, F_GETFD) & FD_CLOEXEC));
	NEED(cw_notify_listen_fd("rank-1.0") == -1); /* a file takes no connections */
	NEED(cw_notify_listen_fd("contro") == -1);
	NEED(cw_notify_passed_fds("rank-", &list, &n) == 0);
	NEED(n == 1 && list[0].fd == 3 && strcmp(list[0].name, "rank-1.0") == 0);
	NEED(cw_notify_passed_fds("other", &list, &n) == 0 && n == 0);
}

static void takes_nothing_of_another_process(void)
{
	take_two(1, "2", "a:control");
	NEED(cw_notify_listen_fd("control") == -1);
}

static void takes_nothing_when_told_nonsense(void)
{
	struct cw_passed_fd *list;
	size_t n;

	take_two(0, "2000000000", "a:control");
	NEED(cw_notify_listen_fd("control") == -1);
	setenv("LISTEN_FDS", "2", 1);
	setenv("LISTEN_FDNAMES", "a", 1); /* one too few: no name, so nothing of ours */
	NEED(cw_notify_listen_fd("control") == -1);
	NEED(cw_notify_passed_fds("a", &list, &n) == 0 && n == 1);
	unsetenv("LISTEN_FDNAMES");
	NEED(cw_notify_passed_fds("", &list, &n) == 0 && n == 0);
}

Test(sd_notify, takes_what_was_passed)
{
	in_a_child(takes_what_was_passed);
}

Test(sd_notify, takes_nothing_of_another_process)
{
	in_a_child(takes_nothing_of_another_process);
}

Test(sd_notify, takes_nothing_when_told_nonsense)
{
	in_a_child(takes_nothing_when_told_nonsense);
}
