/* SPDX-License-Identifier: Apache-2.0 */
/* A view opened before a capture shows afterwards whether the process is still the same. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/procfs.h"
#include "daemon/kernel/procstat.h"
#include "tests/support/agent/guarded_program.h"
#include "tests/support/node/slow_exec.h"

TestSuite(procfs_view, .init = guarded_set_up, .fini = guarded_tear_down, .timeout = 300);

static void open_view(pid_t pid, struct cw_procfs_view *view)
{
	cr_assert_eq(cw_procfs_view_open(pid, guarded_start_ticks(pid), NOBODY, view), 0);
	cr_assert(cw_procfs_view_holds(view));
}

Test(procfs_view, is_not_given_of_another_process_or_user)
{
	pid_t pid = guarded_start(GUARD_NONE, GUARD_NONE);
	uint64_t ticks = guarded_start_ticks(pid);
	struct cw_procfs_view view;

	cr_expect_eq(cw_procfs_view_open(pid, ticks + 1, NOBODY, &view), -ENOENT);
	cr_expect_eq(cw_procfs_view_open(pid, ticks, NOBODY - 1, &view), -EPERM);
	cr_expect_eq(cw_procfs_view_open(pid, ticks, 0, &view), -EPERM);
}

Test(procfs_view, ends_when_a_guarded_program_is_started)
{
	pid_t pid = guarded_start(GUARD_NONE, GUARD_SETUID);
	struct cw_procfs_view view;

	open_view(pid, &view);
	guarded_become(pid);
	cr_expect_not(cw_procfs_view_holds(&view));
	cw_procfs_view_close(&view);
}

/* Between two looks there may have been a guarded one. */
Test(procfs_view, ends_when_any_program_is_started)
{
	pid_t pid = guarded_start(GUARD_UNREADABLE, GUARD_NONE);
	struct cw_procfs_view view = { .uid = NOBODY };

	cr_assert_eq(cw_procfs_view_open(pid, guarded_start_ticks(pid), NOBODY, &view), -EPERM);
	guarded_become(pid);
	open_view(pid, &view);
	view.start_stack++;
	cr_expect_not(cw_procfs_view_holds(&view), "its stack began elsewhere");
	cw_procfs_view_close(&view);
}

Test(procfs_view, ends_with_the_process)
{
	pid_t pid = guarded_start(GUARD_NONE, GUARD_NONE);
	struct cw_procfs_view view;

	open_view(pid, &view);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_not(cw_procfs_view_holds(&view));
	cw_procfs_view_close(&view);
}

/* The loop asks this before it has the kernel's side read. */
Test(procfs_view, question_does_not_wait_for_a_process_in_the_middle_of_execve)
{
	struct slow_exec s;
	int fd;

	if (!slow_exec_start(&s))
		cr_skip_test("no root, or no FUSE");
	fd = cw_procstat_open(s.pid);
	cr_assert_geq(fd, 0);
	cr_expect(cw_procfs_may_see(fd, 0, 0));
	cr_expect_not(cw_procfs_may_see(fd, 0, NOBODY));
	slow_exec_stop(&s);
	close(fd);
}

Test(procfs_view, reads_ids_where_they_are)
{
	static const char text[] =
		"Name:\ta\\nUid:\t0\t0\t0\t0\nState:\tS (sleeping)\n"
		"Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nCapPrm:\t0000000000002000\n";
	struct cw_procfs_ids ids;

	cr_assert_eq(cw_procfs_parse_ids(text, &ids), 0);
	cr_expect(ids.uid[0] == 1 && ids.uid[3] == 4 && ids.gid[0] == 5 && ids.gid[3] == 8);
	cr_expect_eq(ids.permitted, 0x2000);
	cr_expect_eq(cw_procfs_parse_ids("Name:\ta\nUid:\t1\t2\t3\n", &ids), -EBADMSG);
	cr_expect_eq(cw_procfs_parse_ids("", &ids), -EBADMSG);
}
