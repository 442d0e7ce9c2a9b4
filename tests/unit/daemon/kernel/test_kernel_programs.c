/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes the programs in the kernel see, under which numbers, and when there are none. */
#include "daemon/kernel/kernel_events.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_waiting(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

/* Only what is watched, only while it is. */
Test(kernel_programs, others_leave_no_trace)
{
	struct cw_facts_process facts;
	struct cw_kernel_events *k;
	struct cw_err err;
	pid_t watched, other;

	if (cw_kernel_events_new(&k, &err) < 0)
		cr_skip_test("no BPF here: %s", err.text);
	watched = start_waiting();
	other = start_waiting();
	cw_kernel_events_watch(k, watched);
	cr_assert_eq(cw_kernel_events_read(k, watched, &facts), 0);
	cr_assert_eq(facts.ended_ns, 0);
	cr_assert_eq(kill(other, SIGKILL), 0);
	cr_assert_eq(waitpid(other, NULL, 0), other);
	cr_assert_eq(cw_kernel_events_read(k, other, &facts), -ENOENT);
	cr_assert_eq(kill(watched, SIGTERM), 0);
	cr_assert_eq(waitpid(watched, NULL, 0), watched);
	cr_assert_eq(cw_kernel_events_read(k, watched, &facts), 0);
	cr_assert_neq(facts.ended_ns, 0);
	cr_assert_eq(facts.status, SIGTERM);
	cr_assert_eq(facts.fatal.sender_pid, (uint32_t)getpid());
	cw_kernel_events_forget(k, watched);
	cr_assert_eq(cw_kernel_events_read(k, watched, &facts), -ENOENT);
	(void)cw_kernel_events_free(k); /* always NULL */
}

Test(kernel_programs, without_rights_there_is_a_reason)
{
	struct cw_kernel_events *k;
	struct cw_err err = { "" };

	if (geteuid() != 0)
		cr_skip_test("needs root, to give it up");
	cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	cr_assert_lt(cw_kernel_events_new(&k, &err), 0);
	cr_assert_neq(err.text[0], '\0');
}

/* ---- a daemon in a pid namespace of its own ---- */

/* The daemon's part; its exit status is the step that failed. */
static int watch_inside(int to_outside, int from_outside)
{
	struct cw_facts_process facts;
	struct cw_kernel_events *k;
	struct cw_err err;
	pid_t one, two;
	char c = 0;

	if (getpid() != 1 || cw_kernel_events_new(&k, &err) < 0)
		return 1;
	one = start_waiting();
	two = start_waiting();
	cw_kernel_events_watch(k, one);
	cw_kernel_events_watch(k, two);
	if (kill(one, SIGTERM) < 0 || waitpid(one, NULL, 0) != one)
		return 2;
	if (cw_kernel_events_read(k, one, &facts) < 0 || !facts.ended_ns || facts.status != SIGTERM)
		return 3;
	if (facts.fatal.sender_pid != 1) /* the number it has in here */
		return 4;
	/* Now a process without a number in here. */
	if (write(to_outside, &c, 1) != 1 || read(from_outside, &c, 1) != 1 ||
	    waitpid(two, NULL, 0) != two)
		return 5;
	if (cw_kernel_events_read(k, two, &facts) < 0 || facts.status != SIGKILL ||
	    facts.fatal.sig != SIGKILL || facts.fatal.sender_pid != 0)
		return 6;
	(void)cw_kernel_events_free(k); /* always NULL */
	return 0;
}

/* The youngest child of a process of another namespace. */
static pid_t last_child_of(pid_t pid)
{
	char path[64], text[256] = "", *last;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	cr_assert_gt(n, 1);
	text[n - 1] = '\0'; /* the space at the end */
	last = strrchr(text, ' ');
	return (pid_t)strtol(last ? last + 1 : text, NULL, 10);
}

/*
 * Starts the daemon as pid 1 of a namespace and ends as it does. A process of its own:
 * after unshare(), a process can start no others once that pid 1 has ended, and the leak
 * checker starts one.
 */
static int start_inside(const int *out, const int *in, int pid_pipe)
{
	pid_t daemon;
	int status;

	if (unshare(CLONE_NEWPID) < 0)
		return 101;
	daemon = fork();
	if (daemon == 0)
		_exit(watch_inside(out[1], in[0]));
	close(out[1]);
	if (write(pid_pipe, &daemon, sizeof(daemon)) != sizeof(daemon) ||
	    waitpid(daemon, &status, 0) != daemon)
		return 102;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 103;
}

Test(kernel_programs, pids_are_those_of_the_daemons_namespace, .timeout = 300)
{
	int out[2], in[2], pids[2], status;
	struct cw_kernel_events *k;
	pid_t starter, daemon;
	struct cw_err err;
	char c;

	if (cw_kernel_events_new(&k, &err) < 0)
		cr_skip_test("no BPF here: %s", err.text);
	(void)cw_kernel_events_free(k); /* always NULL */
	cr_assert(pipe(out) == 0 && pipe(in) == 0 && pipe(pids) == 0);
	starter = fork();
	if (starter == 0)
		_exit(start_inside(out, in, pids[1]));
	close(out[1]);
	close(pids[1]);
	cr_assert_eq(read(pids[0], &daemon, sizeof(daemon)), (ssize_t)sizeof(daemon));
	if (read(out[0], &c, 1) == 1) {
		cr_assert_eq(kill(last_child_of(daemon), SIGKILL), 0);
		cr_assert_eq(write(in[1], &c, 1), 1);
	}
	cr_assert_eq(waitpid(starter, &status, 0), starter);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "step %d", WEXITSTATUS(status));
}
