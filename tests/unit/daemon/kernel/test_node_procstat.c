/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/procstat.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/node/slow_exec.h"

/* Fields 4… of a real process with the interesting ones replaced. */
#define TAIL                                                                                       \
	" 77 812 812 34816 812 4194304 120 0 0 0 11 22 33 44 20 0 5 0 987654 1000 25 "             \
	"18446744073709551615 1 1 140730000 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 256\n"

Test(procstat, reads_all_fields_of_a_line)
{
	struct cw_procstat st;

	cr_assert_eq(cw_procstat_parse("812 (python3) T" TAIL, &st), 0);
	cr_assert_str_eq(st.comm, "python3");
	cr_assert_eq(st.state, 'T');
	cr_assert_eq(st.ppid, 77);
	cr_assert_eq(st.cpu_ticks, 33);
	cr_assert_eq(st.child_cpu_ticks, 77);
	cr_assert_eq(st.threads, 5);
	cr_assert_eq(st.start_ticks, 987654);
	cr_assert(st.is_permitted);
	cr_assert_eq(st.exit_code, 256);
}

Test(procstat, is_not_fooled_by_a_hostile_name)
{
	struct cw_procstat st;

	cr_assert_eq(cw_procstat_parse("812 (a) Z 1 (b) S" TAIL, &st), 0);
	cr_assert_str_eq(st.comm, "a) Z 1 (b");
	cr_assert_eq(st.state, 'S');
	cr_assert_eq(st.ppid, 77);
}

Test(procstat, refuses_what_is_no_stat_line)
{
	static const char *const lines[] = { "",         "812",    "812 (x",         "812 (x)",
					     "812 (x) ", ")( S 1", "812 (x) S 1 2 3" };
	struct cw_procstat st;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		cr_assert_eq(cw_procstat_parse(lines[i], &st), -EBADMSG, "'%s'", lines[i]);
}

Test(procstat, reads_this_process)
{
	int fd = cw_procstat_open(getpid());
	struct cw_procstat st;
	struct cw_procsched sched;
	uint64_t value;
	pid_t tids[8];
	size_t n;

	cr_assert_geq(fd, 0);
	cr_assert_eq(cw_procstat_read(fd, &st), 0);
	cr_assert_eq(st.ppid, getppid());
	cr_assert_eq(st.state, 'R');
	cr_assert(st.is_permitted);
	cr_assert_eq(cw_procstat_threads(fd, tids, 8, &n), 0);
	cr_assert_eq(n, st.threads);
	cr_assert_eq(tids[0], getpid());
	cr_assert_eq(cw_procstat_read_thread(fd, tids[0], &st), 0);
	cr_assert_eq(cw_procstat_main_sched(fd, &sched), 0);
	cr_assert_gt(sched.cpu_ns, 0);
	cr_assert_gt(sched.runs, 0);
	cr_assert_eq(cw_procstat_io_bytes(fd, &value), 0);
	close(fd);
}

Test(procstat, finds_children_and_notices_the_dead)
{
	int pipe_fds[2], fd, child_fd;
	struct cw_procstat st;
	pid_t child, pids[4];
	size_t n;
	char c;

	cr_assert_eq(pipe(pipe_fds), 0);
	child = fork();
	if (child == 0) {
		close(pipe_fds[1]);
		_exit(read(pipe_fds[0], &c, 1) == 0 ? 0 : 1);
	}
	fd = cw_procstat_open(getpid());
	child_fd = cw_procstat_open(child);
	cr_assert_eq(cw_procstat_children(fd, pids, 4, &n), 0);
	cr_assert_eq(n, 1);
	cr_assert_eq(pids[0], child);
	close(pipe_fds[1]);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_assert_eq(cw_procstat_read(child_fd, &st), -ESRCH);
	cr_assert_eq(cw_procstat_open(child), -ESRCH);
	close(fd);
	close(child_fd);
}

/* Its open files may lie on a file system that its user serves, or that hangs. */
Test(procstat, does_not_wait_for_a_process_in_the_middle_of_execve, .timeout = 60)
{
	struct cw_procstat st;
	struct slow_exec s;
	int fd;

	if (!slow_exec_start(&s))
		cr_skip_test("no root, or no FUSE");
	fd = cw_procstat_open(s.pid);
	cr_assert_geq(fd, 0);
	cr_assert_eq(cw_procstat_read(fd, &st), -EBUSY);
	slow_exec_stop(&s);
	cr_assert_eq(cw_procstat_read(fd, &st), -ESRCH, "and nothing is left of it");
	close(fd);
}
