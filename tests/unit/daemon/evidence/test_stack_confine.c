/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights that remain to a child that unwinds a hostile program's stack. The program tries them,
 * and the kernel lists them.
 */
#include "daemon/evidence/stack_confine.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

/* Tries what it must not be able to do; each bit is one thing that was possible, or failed
 * otherwise. */
enum {
	COULD_CONNECT = 1 << 0,
	COULD_WRITE = 1 << 1,
	COULD_MAKE = 1 << 2,
	COULD_EXECUTE = 1 << 3,
	COULD_FORK = 1 << 4,
	COULD_TRACE = 1 << 5,
	COULD_KILL = 1 << 6,
	COULD_MAP_CODE = 1 << 7,
	COULD_BECOME_ROOT = 1 << 8,
	COULD_BE_DUMPED = 1 << 9,
	CONFINED = 1 << 20,
};

static bool refused(long r)
{
	return r < 0 && errno == EPERM;
}

static unsigned try_all(const char *file)
{
	char *const argv[] = { (char *)"true", NULL };
	unsigned could = 0;
	pid_t pid;

	could |= refused(socket(AF_UNIX, SOCK_STREAM, 0)) ? 0 : COULD_CONNECT;
	could |= refused(open(file, O_WRONLY)) ? 0 : COULD_WRITE;
	could |= refused(open("/tmp/cw-confined", O_RDONLY | O_CREAT, 0600)) ? 0 : COULD_MAKE;
	could |= refused(execv("/bin/true", argv)) ? 0 : COULD_EXECUTE;
	pid = fork();
	if (pid == 0)
		_exit(0);
	could |= refused(pid) ? 0 : COULD_FORK;
	could |= refused(ptrace(PTRACE_TRACEME, 0, 0, 0)) ? 0 : COULD_TRACE;
	could |= refused(kill(getppid(), 0)) ? 0 : COULD_KILL;
	could |= mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
					 MAP_FAILED &&
				 errno == EPERM
			 ? 0
			 : COULD_MAP_CODE;
	could |= refused(setuid(0)) ? 0 : COULD_BECOME_ROOT;
	could |= refused(prctl(PR_SET_DUMPABLE, 1)) ? 0 : COULD_BE_DUMPED;
	return could | CONFINED;
}

struct confined {
	pid_t pid;
	int from, to; /* it ends when `to` is closed */
	unsigned could;
};

static struct confined start(uid_t uid, gid_t gid)
{
	char file[] = "/tmp/cw-confine-XXXXXX";
	struct confined c = { 0 };
	int in[2], out[2], fd = mkstemp(file);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fchmod(fd, 0666), 0);
	cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	c.pid = fork();
	if (c.pid == 0) {
		unsigned could;
		char byte;

		(void)close(in[1]);
		if (cw_stack_confine_unwinder(uid, gid) < 0)
			_exit(1);
		could = try_all(file);
		if (write(out[1], &could, sizeof(could)) != sizeof(could) ||
		    read(in[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	c.to = in[1];
	c.from = out[0];
	cr_assert_eq(read(c.from, &c.could, sizeof(c.could)), (ssize_t)sizeof(c.could));
	(void)unlink(file);
	return c;
}

static void stop(struct confined *c)
{
	int status = 0;

	(void)close(c->to);
	cr_assert_eq(waitpid(c->pid, &status, 0), c->pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ends as it likes");
}

/* The line of /proc/PID/FILE that begins with key, its blanks made one each. */
static const char *line_of(pid_t pid, const char *name, const char *key)
{
	static char line[256];
	char path[64], text[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "r");
	cr_assert_not_null(f);
	line[0] = '\0';
	while (fgets(text, sizeof(text), f))
		if (strncmp(text, key, strlen(key)) == 0) {
			size_t n = 0;

			for (const char *p = text + strlen(key); *p && *p != '\n'; p++)
				if (*p > ' ' || (n && line[n - 1] != ' '))
					line[n++] = *p > ' ' ? *p : ' ';
			while (n && line[n - 1] == ' ')
				n--;
			line[n] = '\0';
			break;
		}
	(void)fclose(f);
	return line;
}

static void expect_no_capabilities(pid_t pid)
{
	static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapAmb:" };

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		cr_expect_str_eq(line_of(pid, "status", sets[i]), "0000000000000000", "%s",
				 sets[i]);
}

Test(stack_confine, unwinder_has_neither_rights_nor_calls_left)
{
	struct confined c = start(NOBODY, NOBODY);

	cr_expect_eq(c.could, CONFINED, "0x%x was possible", c.could & ~CONFINED);
	expect_no_capabilities(c.pid);
	cr_expect_str_eq(line_of(c.pid, "status", "NoNewPrivs:"), "1");
	cr_expect_str_eq(line_of(c.pid, "status", "Seccomp:"), "2", "a filter");
	cr_expect_str_eq(line_of(c.pid, "limits", "Max core file size"), "0 0 bytes");
	cr_expect_str_eq(line_of(c.pid, "limits", "Max file size"), "0 0 bytes");
	cr_expect_str_eq(line_of(c.pid, "limits", "Max cpu time"), "10 10 seconds");
	stop(&c);
}

Test(stack_confine, unwinder_is_the_rank_s_user_and_shows_nobody_its_memory)
{
	char path[64];
	struct stat st;
	struct confined c;

	if (geteuid() != 0)
		cr_skip_test("becoming another user needs root");
	c = start(NOBODY, NOBODY);
	cr_expect_str_eq(line_of(c.pid, "status", "Uid:"), "65534 65534 65534 65534");
	cr_expect_str_eq(line_of(c.pid, "status", "Gid:"), "65534 65534 65534 65534");
	cr_expect_str_eq(line_of(c.pid, "status", "Groups:"), "");
	/* Root's while it is not dumpable: its user could trace it otherwise. */
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)c.pid);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_uid, 0);
	stop(&c);
}
