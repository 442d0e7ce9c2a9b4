/* SPDX-License-Identifier: Apache-2.0 */
/* The test forks the child that the fork server would make, and may stop it. */
#include "daemon/kernel/closed_files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/kernel/procstat.h"

static int pair[2], proc_fd;
static pid_t reader;
static unsigned n_late;

static void on_late(void *user)
{
	n_late++;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void set_up(void)
{
	proc_fd = cw_procstat_open(getpid());
	cr_assert_geq(proc_fd, 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	reader = fork();
	if (reader == 0) {
		close(pair[0]);
		_exit(cw_closed_files_child(pair[1]));
	}
	cr_assert_gt(reader, 0);
	close(pair[1]);
	/* As the fork server's sockets. */
	cr_assert_eq(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	cw_closed_files_use(pair[0], on_late, NULL);
}

static void tear_down(void)
{
	int status;

	kill(reader, SIGCONT);
	close(pair[0]);
	close(proc_fd);
	cr_assert_eq(waitpid(reader, &status, 0), reader);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
}

TestSuite(closed_files, .init = set_up, .fini = tear_down, .timeout = 120);

/* On a busy machine an answer may be late; the next one is not. */
static ssize_t read_one(enum cw_closed_file file, int number, char *buf, size_t len)
{
	ssize_t n;

	do
		n = cw_closed_files_read(proc_fd, file, number, buf, len);
	while (n == -EAGAIN);
	return n;
}

Test(closed_files, reads_each_of_its_files)
{
	char text[CW_CLOSED_MAX_BYTES], expected[64];
	int fd = open("/dev/null", O_RDONLY);

	cr_assert_gt(read_one(CW_CLOSED_IO, 0, text, sizeof(text)), 0);
	cr_assert_eq(strncmp(text, "rchar: ", 7), 0, "%s", text);
	cr_assert_gt(read_one(CW_CLOSED_STAT, 0, text, sizeof(text)), 0);
	snprintf(expected, sizeof(expected), "%d (", (int)getpid());
	cr_assert_eq(strncmp(text, expected, strlen(expected)), 0, "%s", text);
	/* It waits for the answer, so it is in a system call. */
	cr_assert_gt(read_one(CW_CLOSED_SYSCALL, 0, text, sizeof(text)), 0);
	cr_assert_gt(read_one(CW_CLOSED_THREAD_SYSCALL, getpid(), text, sizeof(text)), 0);
	cr_assert_eq(read_one(CW_CLOSED_LINK, fd, text, sizeof(text)), 9);
	cr_assert_str_eq(text, "/dev/null");
	close(fd);
}

Test(closed_files, cuts_a_text_that_is_longer_than_the_buffer)
{
	char text[8];

	cr_assert_eq(read_one(CW_CLOSED_IO, 0, text, sizeof(text)), 7);
	cr_assert_str_eq(text, "rchar: ");
}

Test(closed_files, reports_the_error_of_the_read)
{
	char text[64];

	cr_assert_eq(read_one(CW_CLOSED_THREAD_SYSCALL, 1, text, sizeof(text)), -ENOENT);
	cr_assert_eq(read_one(CW_CLOSED_LINK, 9999, text, sizeof(text)), -ENOENT);
	cr_assert_eq(read_one((enum cw_closed_file)CW_CLOSED_LINK + 9, 0, text, sizeof(text)),
		     -EINVAL);
}

Test(closed_files, waits_once_for_a_child_that_does_not_answer_and_drops_its_late_answer)
{
	char text[CW_CLOSED_MAX_BYTES];
	int64_t start_ns;

	cr_assert_gt(read_one(CW_CLOSED_IO, 0, text, sizeof(text)), 0);
	n_late = 0;
	cr_assert_eq(kill(reader, SIGSTOP), 0);
	start_ns = now_ns();
	cr_assert_eq(cw_closed_files_read(proc_fd, CW_CLOSED_IO, 0, text, sizeof(text)), -EAGAIN);
	cr_assert_geq(now_ns() - start_ns, CW_CLOSED_WAIT_MS * 900000);
	cr_assert_eq(cw_closed_files_read(proc_fd, CW_CLOSED_STAT, 0, text, sizeof(text)), -EAGAIN);
	cr_assert(cw_closed_files_is_late());
	cr_assert_eq(n_late, 1);
	cr_assert_eq(kill(reader, SIGCONT), 0);
	while (cw_closed_files_is_late())
		(void)poll(NULL, 0, 1);
	cr_assert_gt(read_one(CW_CLOSED_STAT, 0, text, sizeof(text)), 0);
	cr_assert_eq(atoi(text), (int)getpid(), "an answer to this request: %s", text);
}

Test(closed_files, without_a_child_nothing_is_read)
{
	char text[64];

	cw_closed_files_use(-1, NULL, NULL);
	cr_assert_eq(cw_closed_files_read(proc_fd, CW_CLOSED_IO, 0, text, sizeof(text)), -EAGAIN);
	cr_assert_eq(cw_closed_map_delete(-1, 1), -EBADF);
}
