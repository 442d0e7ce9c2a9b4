/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/oom.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/kernel/procstat.h"

#define S CW_NS_PER_S

static struct cw_oom with_file(void)
{
	struct cw_oom oom = { .fd = memfd_create("memory.events", MFD_CLOEXEC) };

	cr_assert_geq(oom.fd, 0);
	return oom;
}

static void write_events(const struct cw_oom *oom, unsigned kills)
{
	char text[128];
	int n = snprintf(text, sizeof(text),
			 "low 0\nhigh 0\nmax 7\noom 9\noom_kill %u\noom_group_kill 55\n", kills);

	cr_assert_eq(pwrite(oom->fd, text, (size_t)n, 0), n);
}

Test(oom, kill_after_a_rise_of_the_count)
{
	struct cw_oom oom = with_file();

	write_events(&oom, 0);
	cw_oom_look(&oom, 100 * S);
	cr_assert_not(cw_oom_has_killed(&oom, 101 * S));
	write_events(&oom, 1);
	cr_assert(cw_oom_has_killed(&oom, 102 * S), "counted since the last look");
	cr_assert(cw_oom_has_killed(&oom, 110 * S), "it takes time to die");
	cr_assert_not(cw_oom_has_killed(&oom, 200 * S), "an old story");
	cw_oom_close(&oom);
	cr_assert_not(cw_oom_has_killed(&oom, 300 * S));
}

Test(oom, claims_nothing_about_what_it_cannot_read)
{
	struct cw_oom oom = with_file();

	cr_assert_eq(pwrite(oom.fd, "xoom_kill 5\noom_group_kill 5\n", 29, 0), 29);
	cr_assert_not(cw_oom_has_killed(&oom, 100 * S));
	cw_oom_close(&oom);
}

Test(oom, opens_the_group_of_this_process_or_says_that_it_cannot)
{
	int proc_fd = cw_procstat_open(getpid());
	struct cw_oom oom;

	cw_oom_open(&oom, proc_fd);
	if (oom.fd < 0)
		cr_log_info("no memory.events here: nothing will be claimed");
	cr_assert_not(cw_oom_has_killed(&oom, 100 * S));
	cw_oom_close(&oom);
	cr_assert_eq(oom.fd, -1);
	close(proc_fd);
}

/* A directory like that of a process, with only this in its list of groups. */
static bool opens(const char *groups)
{
	char dir[] = "/tmp/oom.XXXXXX";
	struct cw_oom oom;
	int proc_fd, fd;

	cr_assert_not_null(mkdtemp(dir));
	proc_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(proc_fd, "cgroup", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, groups, strlen(groups)), (ssize_t)strlen(groups));
	close(fd);
	cw_oom_open(&oom, proc_fd);
	fd = oom.fd;
	cw_oom_close(&oom);
	(void)unlinkat(proc_fd, "cgroup", 0);
	close(proc_fd);
	(void)rmdir(dir);
	return fd >= 0;
}

Test(oom, finds_the_memory_controller_of_version_1)
{
	bool is_there = access("/sys/fs/cgroup/memory/memory.oom_control", R_OK) == 0;

	cr_expect_eq(opens("3:cpuset:/\n4:cpu,memory:/\n"), is_there);
	cr_expect_eq(opens("4:memory:/\n0::/no/such/group\n"), is_there);
	cr_expect_eq(opens("0::/no/such/group\n4:memory:/\n"), is_there);
}

Test(oom, follows_no_path_it_should_not)
{
	cr_expect_not(opens("4:cpumemory:/\n5:memory2:/\n"));
	cr_expect_not(opens("4:memory:/../memory\n"), "outside the namespace");
	cr_expect_not(opens("4:memory:/"), "cut off");
	cr_expect_not(opens("memory\n:\n::\n"));
}
