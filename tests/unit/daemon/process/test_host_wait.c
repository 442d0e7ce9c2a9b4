/* SPDX-License-Identifier: Apache-2.0 */
/* Lines as the kernel writes them, and real processes that wait. */
#include "daemon/process/host_wait.h"

#include <criterion/criterion.h>
#include <linux/futex.h>
#include <poll.h>
#include <pty.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/procstat.h"
#include "model/facts.h"

#define REST " 0x7ffd0 0x1 0x0 0x0 0x0 0x7ffd8 0x7f1c"

Test(host_wait, tells_calls_that_wait_for_a_descriptor)
{
	static const long waiting[] = { SYS_read,    SYS_readv,  SYS_recvfrom,
					SYS_recvmsg, SYS_accept, SYS_accept4 };
	char line[128];

	for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++) {
		(void)snprintf(line, sizeof(line), "%ld 0x1f" REST "\n", waiting[i]);
		cr_expect_eq(cw_host_wait_fd(line), 31, "%s", line);
	}
	(void)snprintf(line, sizeof(line), "%ld 0x1f" REST "\n", (long)SYS_futex);
	cr_expect_eq(cw_host_wait_fd(line), -1);
	(void)snprintf(line, sizeof(line), "%ld 0xffffffff" REST "\n", (long)SYS_read);
	cr_expect_eq(cw_host_wait_fd(line), -1, "no descriptor");
}

Test(host_wait, takes_nothing_from_other_lines)
{
	static const char *const lines[] = { "", "running\n", "-1 0x7ffd8 0x7f1c\n", "0", "0 x" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		cr_expect_eq(cw_host_wait_fd(lines[i]), -1, "\"%s\"", lines[i]);
}

Test(host_wait, knows_sockets_and_terminals)
{
	cr_expect_eq(cw_host_wait_of("socket:[4711]"), CW_HOST_WAIT_SOCKET);
	cr_expect_eq(cw_host_wait_of("/dev/pts/3"), CW_HOST_WAIT_TTY);
	cr_expect_eq(cw_host_wait_of("/dev/tty"), CW_HOST_WAIT_TTY);
	cr_expect_eq(cw_host_wait_of("/dev/ttyS0"), CW_HOST_WAIT_TTY);
	cr_expect_eq(cw_host_wait_of("pipe:[4711]"), CW_HOST_WAIT_QUEUE);
	cr_expect_eq(cw_host_wait_of("anon_inode:[eventfd]"), CW_HOST_WAIT_QUEUE);
	cr_expect_eq(cw_host_wait_of("/data/file"), CW_HOST_WAIT_UNKNOWN);
	cr_expect_eq(cw_host_wait_of("/data/socket:/x"), CW_HOST_WAIT_UNKNOWN);
}

static bool waits_for_any(long call, unsigned op)
{
	char line[128];

	(void)snprintf(line, sizeof(line), "%ld 0x7f00 0x%x 0x0 0x0 0x0 0x0 0x7ffd8 0x7f1c\n", call,
		       op);
	return cw_host_wait_is_for_any(line);
}

Test(host_wait, tells_calls_that_anybody_may_end)
{
	static const long waiting[] = { SYS_ppoll, SYS_pselect6, SYS_epoll_pwait, SYS_nanosleep,
					SYS_clock_nanosleep };

	for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++)
		cr_expect(waits_for_any(waiting[i], 0), "%ld", waiting[i]);
	cr_expect(waits_for_any(SYS_futex, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG));
	cr_expect_not(waits_for_any(SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG), "a mutex");
	cr_expect_not(waits_for_any(SYS_read, 0));
	cr_expect_not(waits_for_any(SYS_ioctl, 0));
	cr_expect_not(cw_host_wait_is_for_any("running\n"));
	cr_expect_not(cw_host_wait_is_for_any(""));
}

static struct cw_host_lock lock_of(long call, unsigned op, const char *timeout)
{
	char line[128];

	(void)snprintf(line, sizeof(line), "%ld 0x7f12345000 0x%x 0x2 %s 0x0 0x0 0x7ffd8 0x7f1c\n",
		       call, op, timeout);
	return cw_host_wait_lock(line);
}

/* As glibc's mutexes wait, and nothing else that it makes of futexes. */
Test(host_wait, knows_a_mutex_by_its_wait)
{
	struct cw_host_lock lock = lock_of(SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, "0x0");

	cr_expect_eq(lock.address, 0x7f12345000);
	cr_expect_not(lock.is_inherited);
	lock = lock_of(SYS_futex, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, "0x0");
	cr_expect_eq(lock.address, 0x7f12345000);
	cr_expect(lock.is_inherited);
	lock = lock_of(SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, "0x7ffe0");
	cr_expect_eq(lock.address, 0, "with a time");
	lock = lock_of(SYS_futex, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, "0x0");
	cr_expect_eq(lock.address, 0, "a condition, or a semaphore");
	lock = lock_of(SYS_read, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, "0x0");
	cr_expect_eq(lock.address, 0, "no futex");
	cr_expect_eq(cw_host_wait_lock("running\n").address, 0);
}

/* A prompt with a line editor looks whether something was typed. */
Test(host_wait, knows_a_prompt_by_its_only_descriptor)
{
	char line[128];

	(void)snprintf(line, sizeof(line), "%ld 0x1" REST "\n", (long)SYS_pselect6);
	cr_expect_eq(cw_host_wait_fd(line), 0);
	(void)snprintf(line, sizeof(line), "%ld 0x5" REST "\n", (long)SYS_pselect6);
	cr_expect_eq(cw_host_wait_fd(line), -1);
}

/* Until a child sleeps in what it was started for: before, it is nowhere. */
static unsigned look_at(void (*sleep_in)(int fd), int fd, unsigned last, unsigned wanted)
{
	const struct cw_host_interpreter none = { 0 };
	unsigned seen = CW_HOST_WAIT_UNKNOWN;
	pid_t pid = fork();
	struct cw_host_lock lock;
	int proc_fd;

	cr_assert(pid >= 0);
	if (pid == 0) {
		sleep_in(fd);
		_exit(0);
	}
	proc_fd = cw_procstat_open(pid);
	cr_assert(proc_fd >= 0);
	for (int i = 0; i < 120000 && seen != wanted; i++) {
		seen = cw_host_wait_look(proc_fd, &none, last, &lock);
		(void)usleep(1000);
	}
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(cw_host_wait_look(proc_fd, &none, CW_HOST_WAIT_TTY, &lock),
		     CW_HOST_WAIT_UNKNOWN, "the process is gone");
	(void)close(proc_fd);
	return seen;
}

static void in_read(int fd)
{
	char byte;

	(void)!read(fd, &byte, 1);
}

static void in_select(int fd)
{
	fd_set set;

	(void)dup2(fd, 0);
	FD_ZERO(&set);
	FD_SET(0, &set);
	(void)select(1, &set, NULL, NULL, NULL);
}

static void in_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)poll(&p, 1, -1);
}

static void in_semaphore(int fd)
{
	sem_t sem;

	(void)fd;
	(void)sem_init(&sem, 0, 0);
	(void)sem_wait(&sem);
}

static unsigned look_at_reader(int fd, unsigned wanted)
{
	return look_at(in_read, fd, CW_HOST_WAIT_UNKNOWN, wanted);
}

static bool may_look(void)
{
	FILE *f = fopen("/proc/self/syscall", "re");
	bool may;

	may = f && fgetc(f) != EOF;
	if (f)
		(void)fclose(f);
	return may;
}

Test(host_wait, sees_a_process_that_waits_for_a_socket, .timeout = 300)
{
	int fds[2];

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	cr_expect_eq(look_at_reader(fds[0], CW_HOST_WAIT_SOCKET), CW_HOST_WAIT_SOCKET);
}

Test(host_wait, sees_a_process_that_waits_for_a_terminal, .timeout = 300)
{
	int master, slave;

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
		cr_skip_test("there are no terminals here");
	cr_expect_eq(look_at_reader(slave, CW_HOST_WAIT_TTY), CW_HOST_WAIT_TTY);
}

Test(host_wait, sees_a_process_at_a_prompt, .timeout = 300)
{
	int master, slave;

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
		cr_skip_test("there are no terminals here");
	cr_expect_eq(look_at(in_select, slave, CW_HOST_WAIT_UNKNOWN, CW_HOST_WAIT_TTY),
		     CW_HOST_WAIT_TTY);
}

Test(host_wait, sees_processes_that_wait_for_work, .timeout = 300)
{
	int fds[2];

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	cr_assert_eq(pipe(fds), 0);
	cr_expect_eq(look_at(in_read, fds[0], CW_HOST_WAIT_UNKNOWN, CW_HOST_WAIT_QUEUE),
		     CW_HOST_WAIT_QUEUE);
	cr_expect_eq(look_at(in_poll, fds[0], CW_HOST_WAIT_UNKNOWN, CW_HOST_WAIT_QUEUE),
		     CW_HOST_WAIT_QUEUE);
	cr_expect_eq(look_at(in_semaphore, -1, CW_HOST_WAIT_UNKNOWN, CW_HOST_WAIT_QUEUE),
		     CW_HOST_WAIT_QUEUE);
}

static void in_a_loop(int fd)
{
	(void)fd;
	for (volatile unsigned long i = 0;; i++)
		;
}

/* A thread that waits with a time-out runs now and then, and we look just then. */
Test(host_wait, keeps_what_was_seen_while_the_thread_runs, .timeout = 300)
{
	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	cr_expect_eq(look_at(in_a_loop, -1, CW_HOST_WAIT_SOCKET, CW_HOST_WAIT_SOCKET),
		     CW_HOST_WAIT_SOCKET);
	cr_expect_eq(look_at(in_a_loop, -1, CW_HOST_WAIT_TTY, CW_HOST_WAIT_TTY), CW_HOST_WAIT_TTY);
}

Test(host_wait, words_of_the_interpreter_are_its_own)
{
	const struct cw_host_interpreter interpreter = { .address = 4096, .bytes = 64 },
					 none = { 0 };
	struct cw_host_futex futex = { .address = 4096, .is_private = true, .has_timeout = true };

	cr_expect(cw_host_wait_is_interpreter(&interpreter, &futex));
	cr_expect_not(cw_host_wait_is_interpreter(&none, &futex));
	futex.address = 4096 + 63;
	cr_expect(cw_host_wait_is_interpreter(&interpreter, &futex));
	futex.address = 4096 + 64;
	cr_expect_not(cw_host_wait_is_interpreter(&interpreter, &futex));
	futex.address = 4095;
	cr_expect_not(cw_host_wait_is_interpreter(&interpreter, &futex));
	futex = (struct cw_host_futex){ .address = 4096 };
	cr_expect_not(cw_host_wait_is_interpreter(&interpreter, &futex), "another process's, too");
	cr_expect_not(cw_host_wait_is_interpreter(&none, &(struct cw_host_futex){ 0 }));
}
