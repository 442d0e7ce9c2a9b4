/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is really frozen and thawed, where this one may make control groups. */
#include "daemon/kernel/cgroup.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/procstat.h"

#define DEADLINE_MS 120000

/* How often a list of groups is opened: the kernel makes it anew each time. openat() has this name
 * where files are large. */
static unsigned n_lists;

int __real_openat64(int dir_fd, const char *path, int flags, ...);
int __wrap_openat64(int dir_fd, const char *path, int flags, ...);
int __wrap_openat64(int dir_fd, const char *path, int flags, ...)
{
	n_lists += strcmp(path, "cgroup") == 0;
	return __real_openat64(dir_fd, path, flags);
}

struct freezer {
	const char *root, *file, *frozen, *thawed;
};

static const struct freezer freezers[] = {
	{ "/sys/fs/cgroup", "cgroup.freeze", "1", "0" },
	{ "/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0" },
	{ "/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED" },
};

static bool put(const char *dir, const char *file, const char *text)
{
	ssize_t len = (ssize_t)strlen(text), n;
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : write(fd, text, (size_t)len);
	if (fd >= 0)
		(void)close(fd);
	return n == len;
}

static bool comes_to(int proc_fd, bool is_frozen)
{
	for (int i = 0; i < DEADLINE_MS; i++) {
		if (cw_cgroup_is_frozen(proc_fd) == is_frozen)
			return true;
		(void)usleep(1000);
	}
	return false;
}

static bool try_one(const struct freezer *f)
{
	char dir[128], number[16];
	pid_t pid = fork();
	bool has_moved;
	int proc_fd;

	cr_assert_geq(pid, 0);
	if (pid == 0)
		for (;;)
			pause();
	(void)snprintf(dir, sizeof(dir), "%s/collwatch-test-%d", f->root, (int)getpid());
	(void)snprintf(number, sizeof(number), "%d", (int)pid);
	proc_fd = cw_procstat_open(pid);
	has_moved = mkdir(dir, 0755) == 0 && put(dir, "cgroup.procs", number) &&
		    put(dir, f->file, f->thawed);
	if (has_moved) {
		cr_expect_not(cw_cgroup_is_frozen(proc_fd));
		cr_expect(put(dir, f->file, f->frozen));
		cr_expect(comes_to(proc_fd, true), "%s", f->root);
		cr_expect(put(dir, f->file, f->thawed));
		cr_expect(comes_to(proc_fd, false), "%s", f->root);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	for (int i = 0; i < DEADLINE_MS && rmdir(dir) < 0 && access(dir, F_OK) == 0; i++)
		(void)usleep(1000);
	(void)close(proc_fd);
	return has_moved;
}

Test(cgroup, sees_that_a_process_is_frozen, .timeout = 600)
{
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(freezers) / sizeof(*freezers); i++) {
		struct stat st;
		char path[128];

		/* Where this is no group that can be frozen, a directory made there would be one of
		 * a tmpfs. */
		(void)snprintf(path, sizeof(path), "%s/cgroup.procs", freezers[i].root);
		if (stat(path, &st) == 0)
			n += try_one(&freezers[i]);
	}
	if (!n)
		cr_skip_test("no control group can be made here");
}

Test(cgroup, takes_nobody_else_for_frozen)
{
	int proc_fd = cw_procstat_open(getpid());

	cr_expect_not(cw_cgroup_is_frozen(proc_fd));
	cr_expect_not(cw_cgroup_is_frozen(-1));
	(void)close(proc_fd);
}

Test(cgroup, reads_the_list_of_groups_once)
{
	int proc_fd = cw_procstat_open(getpid());

	n_lists = 0;
	cr_expect_not(cw_cgroup_is_frozen(proc_fd));
	cr_expect_eq(n_lists, 1u, "%u", n_lists);
	(void)close(proc_fd);
}
