/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/agent/guarded_program.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/kernel/procfs.h"

#define OTHER_GROUP 12345
#define FD "TEST_GUARDED_FD"
#define GUARD "TEST_GUARDED_BY"
#define THEN "TEST_GUARDED_THEN"

static char dir[] = "/tmp/cw-guarded-XXXXXX";
static int to_rank[2];
static pid_t started[4];
static unsigned n_started;

static const char *file_of(enum guard guard)
{
	static char path[64];
	bool is_of_file = guard >= GUARD_UNREADABLE && guard <= GUARD_CAPABILITIES;

	(void)snprintf(path, sizeof(path), "%s/%d", dir, is_of_file ? (int)guard : GUARD_NONE);
	return path;
}

/* ---- in the rank ---- */

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(90);
	close(fd);
}

static void keep_a_capability(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	data[0].effective = data[0].permitted = data[0].inheritable = 1 << CAP_NET_RAW;
	if (syscall(SYS_capset, &header, data) < 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0) < 0)
		_exit(91);
}

static void own_namespace(void)
{
	if (unshare(CLONE_NEWUSER) < 0)
		_exit(77);
	/* While the process is not dumpable, root owns its files in /proc. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		_exit(92);
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", "0 65534 1");
	put("/proc/self/gid_map", "0 65534 1");
}

static void start_program(enum guard guard, const char *dir_of_rank)
{
	char path[80], number[12];

	(void)snprintf(number, sizeof(number), "%d", (int)guard);
	if (setenv(GUARD, number, 1) < 0)
		_exit(93);
	(void)snprintf(path, sizeof(path), "%s/%d", dir_of_rank,
		       guard >= GUARD_UNREADABLE && guard <= GUARD_CAPABILITIES ? (int)guard
										: GUARD_NONE);
	execl(path, "rank", dir_of_rank, NULL);
	_exit(94);
}

/*
 * Runs before Criterion's main(). A copy of the test that we started as a rank becomes that rank
 * here.
 */
__attribute__((constructor)) static void become_rank(int argc, char **argv)
{
	const char *fd = getenv(FD), *guard = getenv(GUARD), *then = getenv(THEN);
	char byte;

	if (!fd || !guard || !then || argc < 2)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (atoi(guard) == GUARD_WITHDRAWN)
		prctl(PR_SET_DUMPABLE, 0);
	if (atoi(guard) == GUARD_AMBIENT)
		prctl(PR_SET_DUMPABLE, 1);
	if (read(atoi(fd), &byte, 1) == 1)
		start_program((enum guard)atoi(then), argv[1]);
	_exit(0);
}

/* ---- around it ---- */

static void copy_program(enum guard guard, mode_t mode, gid_t gid)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(file_of(guard), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	struct stat st;

	cr_assert(in >= 0 && out >= 0 && fstat(in, &st) == 0);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		cr_assert_gt(n, 0);
		left -= n;
	}
	cr_assert_eq(fchown(out, 0, gid), 0);
	cr_assert_eq(fchmod(out, mode), 0);
	close(in);
	close(out);
}

void guarded_set_up(void)
{
	const uint32_t caps[5] = { VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, 1 << CAP_NET_RAW };
	struct statvfs fs;

	if (geteuid() != 0)
		cr_skip_test("needs root");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	if (statvfs(dir, &fs) < 0 || fs.f_flag & (ST_NOSUID | ST_NOEXEC))
		cr_skip_test("no set-user-ID programs in /tmp");
	copy_program(GUARD_NONE, 0755, 0);
	copy_program(GUARD_UNREADABLE, 0711, 0);
	copy_program(GUARD_SETUID, 04755, 0);
	copy_program(GUARD_SETGID, 02755, OTHER_GROUP);
	copy_program(GUARD_CAPABILITIES, 0755, 0);
	cr_assert_eq(
		setxattr(file_of(GUARD_CAPABILITIES), "security.capability", caps, sizeof(caps), 0),
		0);
}

void guarded_tear_down(void)
{
	for (unsigned i = 0; i < n_started; i++) {
		kill(started[i], SIGKILL);
		waitpid(started[i], NULL, 0);
	}
	for (enum guard g = GUARD_NONE; g <= GUARD_CAPABILITIES; g++)
		(void)unlink(file_of(g));
	(void)rmdir(dir);
}

/* Waits until the process runs the new program and sleeps in read(). */
static void wait_until_asleep(pid_t pid)
{
	struct cw_procfs_syscall sc;
	char text[256], name[32];

	for (;;) { /* the test's time limit ends this loop */
		int status;

		if (cw_procfs_read(pid, "cmdline", name, sizeof(name)) > 0 &&
		    strcmp(name, "rank") == 0 &&
		    cw_procfs_read_task(pid, pid, "syscall", text, sizeof(text)) > 0 &&
		    cw_procfs_parse_syscall(text, &sc) == 0 && sc.number == SYS_read)
			return;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			n_started--;
			if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
				cr_skip_test("no user namespaces here");
			cr_assert_fail("the rank ended: %x", status);
		}
		sched_yield();
	}
}

pid_t guarded_start(enum guard guard, enum guard then)
{
	char text[12];
	pid_t pid;

	cr_assert_eq(pipe(to_rank), 0);
	pid = fork();
	if (pid == 0) {
		(void)snprintf(text, sizeof(text), "%d", to_rank[0]);
		setenv(FD, text, 1);
		(void)snprintf(text, sizeof(text), "%d", (int)then);
		setenv(THEN, text, 1);
		close(to_rank[1]);
		if (guard == GUARD_AMBIENT && prctl(PR_SET_KEEPCAPS, 1) < 0)
			_exit(95);
		if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
		    setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(96);
		if (guard == GUARD_AMBIENT)
			keep_a_capability();
		if (guard == GUARD_NAMESPACE)
			own_namespace();
		start_program(guard, dir);
	}
	cr_assert_gt(pid, 0);
	started[n_started++] = pid;
	wait_until_asleep(pid);
	return pid;
}

void guarded_become(pid_t pid)
{
	struct stat before, after;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	cr_assert_eq(stat(path, &before), 0);
	cr_assert_eq(write(to_rank[1], "x", 1), 1);
	do
		cr_assert_eq(stat(path, &after), 0);
	while (after.st_ino == before.st_ino);
	wait_until_asleep(pid);
}

uint64_t guarded_start_ticks(pid_t pid)
{
	struct cw_procfs_stat st;

	cr_assert_eq(cw_procfs_stat(pid, 0, &st), 0);
	return st.start_ticks;
}
