/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes are looked at: forks of the test itself, which therefore has functions with the
 * names a rank's might have.
 */
#include "daemon/evidence/stack.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/evidence/stack_take.h"
#include "daemon/kernel/procfs.h"
#include "loop/children.h"
#include "tests/support/evidence/stack_fixture.h"

TestSuite(stack, .init = stack_fixture_set_up, .fini = stack_fixture_tear_down, .timeout = 300);

Test(stack, names_the_functions_of_a_blocked_thread_and_leaves_it_alone)
{
	struct cw_stack_target t;
	json_t *native;

	start_target(run_reader, 0);
	wait_until_in(target, SYS_read, 0);
	t = target_of(target, 0);
	native = look_at(&t);
	cr_assert_str_eq(text_of(native, "status"), "ok", "%s", text_of(native, "reason"));
	expect_reader(native);
	cr_assert_gt(json_number_value(json_object_get(native, "held_ms")), 0);
	cr_assert_lt(json_number_value(json_object_get(native, "held_ms")), 100);
	json_decref(native);
	finish_reader();
}

Test(stack, shows_all_threads_but_the_agents_and_interrupts_none)
{
	const json_t *poller, *proxy;
	struct cw_stack_target t;
	json_t *native;

	start_target(run_threads, 0);
	wait_until_in(target, SYS_read, 3);
	t = target_of(target, 0);
	for (int i = 0; i < 3; i++) {
		native = look_at(&t);
		cr_assert_str_eq(text_of(native, "status"), "ok", "%s", text_of(native, "reason"));
		expect_reader(native);
		proxy = thread_named(native, "proxy");
		cr_assert_gt(frame_of(proxy, "proxy_progress"), 0);
		poller = thread_named(native, "poller");
		cr_assert_gt(frame_of(poller, "poll_events"), 0);
		cr_assert_null(thread_named(native, "collwatch-link"));
		json_decref(native);
	}
	finish_reader();
}

Test(stack, unwinds_as_the_rank_s_user)
{
	struct cw_stack_target t;
	json_t *native;

	if (geteuid() != 0)
		cr_skip_test("needs root: changes users");
	start_target(run_reader, NOBODY);
	wait_until_in(target, SYS_read, 0);
	t = target_of(target, NOBODY);
	native = look_at(&t);
	cr_assert_str_eq(text_of(native, "status"), "ok", "%s", text_of(native, "reason"));
	expect_reader(native);
	json_decref(native);
	finish_reader();
}

Test(stack, leaves_a_stopped_process_stopped)
{
	struct cw_stack_target t;
	json_t *native;
	int status;

	start_target(spin_kernel, 0);
	expect_alive();
	cr_assert_eq(kill(target, SIGSTOP), 0);
	cr_assert_eq(waitpid(target, &status, WUNTRACED), target);
	t = target_of(target, 0);
	for (int i = 0; i < 5; i++) {
		uint64_t beats = atomic_load(&board->beats);

		native = look_at(&t);
		cr_assert_str_eq(text_of(native, "status"), "ok", "%s", text_of(native, "reason"));
		cr_assert_eq(frame_of(json_array_get(json_object_get(native, "threads"), 0),
				      "spin_kernel"),
			     0);
		json_decref(native);
		wait_for_state(target, 'T');
		cr_assert_eq(atomic_load(&board->beats), beats);
		cr_assert_eq(waitpid(target, &status, WNOHANG | WCONTINUED), 0);
	}
	/* It can be continued as before. */
	cr_assert_eq(kill(target, SIGCONT), 0);
	cr_assert_eq(waitpid(target, &status, WCONTINUED), target);
	expect_alive();
}

static void expect_refused_for(uid_t uid)
{
	struct cw_stack_target t = target_of(target, uid);
	json_t *native = look_at(&t);

	cr_assert_str_eq(text_of(native, "status"), "refused", "%s", text_of(native, "reason"));
	cr_assert_eq(json_array_size(json_object_get(native, "threads")), 0);
	json_decref(native);
}

/* A rank may start a set-user-ID program: same pid, same start time, but not its user's to see. */
Test(stack, takes_nothing_from_a_process_that_runs_as_somebody_else)
{
	start_target(run_reader, 0);
	wait_until_in(target, SYS_read, 0);
	expect_refused_for(NOBODY);
	finish_reader();
}

static int run_half_nobody(void)
{
	if (setresuid(NOBODY, NOBODY, 0) < 0) /* the saved id is enough to come back */
		return 1;
	prctl(PR_SET_DUMPABLE, 1);
	return run_reader();
}

Test(stack, takes_nothing_from_a_process_that_can_become_somebody_else)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
	start_target(run_half_nobody, 0);
	wait_until_in(target, SYS_read, 0);
	expect_refused_for(NOBODY);
	expect_refused_for(0);
	finish_reader();
}

Test(stack, says_so_when_the_process_is_gone_or_another)
{
	struct cw_stack_target t;
	json_t *native;

	start_target(run_reader, 0);
	wait_until_in(target, SYS_read, 0);
	t = target_of(target, 0);
	t.start_ticks++;
	native = look_at(&t);
	cr_assert_str_eq(text_of(native, "status"), "absent");
	json_decref(native);
	t.start_ticks--;
	kill(target, SIGKILL);
	wait_for_state(target, 'Z');
	native = look_at(&t);
	cr_assert_str_eq(text_of(native, "status"), "absent");
	json_decref(native);
}

static int look_unprivileged(int out_fd, const void *arg)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return 1;
	return cw_stack_child(out_fd, arg);
}

Test(stack, is_refused_without_the_right_to_trace)
{
	struct cw_stack_target t;
	char buf[4096];
	json_t *native;
	ssize_t n;
	pid_t pid;
	int fds[2];

	if (geteuid() != 0)
		cr_skip_test("needs root: changes users");
	start_target(run_reader, 0);
	wait_until_in(target, SYS_read, 0);
	t = target_of(target, 0);
	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0)
		_exit(look_unprivileged(fds[1], &t));
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	n = read(fds[0], buf, sizeof(buf));
	cr_assert_gt(n, 0);
	native = cw_stack_output_read(buf, (size_t)n, true);
	cr_assert_str_eq(text_of(native, "status"), "refused", "%.*s", (int)n, buf);
	cr_assert_not_null(strstr(text_of(native, "reason"), "permission"));
	json_decref(native);
	finish_reader();
}
