/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal may kill a taker of stacks at any moment, and the rank must not notice. We take "at any
 * moment" literally. We trace the taker itself, run it up to its first, second, … system call, and
 * kill it there. Between system calls nothing happens to the rank.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/evidence/stack_take.h"
#include "daemon/kernel/procfs.h"
#include "tests/support/evidence/stack_fixture.h"
#include "tests/support/evidence/traced_fixture.h"
#include "tests/support/node/frozen_fs.h"

static struct frozen_fs frozen;

static void set_up(void)
{
	stack_fixture_set_up();
	/* Takers whose parent is killed become ours, to be reaped. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void tear_down(void)
{
	/* A target that sleeps uninterruptibly cannot be killed, and so not waited for. */
	if (frozen.guard_fd > 0)
		frozen_fs_thaw(&frozen);
	traced_tear_down();
	stack_fixture_tear_down();
}

TestSuite(stack_kill, .init = set_up, .fini = tear_down, .timeout = 300);

/* A taker that counts its endless rounds. */
static pid_t start_taker(struct cw_stack_copy *copy, atomic_uint *rounds)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		copy->next = 0;
		copy->held_ns = 0;
		if (cw_stack_take(copy, 20000) != 0)
			_exit(1);
		atomic_fetch_add(rounds, 1);
	}
}

Test(stack_kill, lets_the_rank_run_on_when_the_taker_is_killed_at_any_moment)
{
	struct cw_stack_copy *copy;
	unsigned seed = 1;

	start_target(spin_kernel, 0);
	expect_alive();
	copy = traced_copy();
	for (int i = 0; i < 200; i++) {
		unsigned from = atomic_load(&board->ready),
			 after_ns = (unsigned)rand_r(&seed) % 200000;
		int64_t start, deadline = now_ns() + 120 * CW_NS_PER_S;
		pid_t taker = start_taker(copy, &board->ready);
		int status;

		cr_assert_gt(taker, 0);
		while (atomic_load(&board->ready) == from && now_ns() < deadline)
			sched_yield();
		cr_assert_neq(atomic_load(&board->ready), from);
		for (start = now_ns(); now_ns() - start < after_ns;)
			; /* the random moment */
		cr_assert_eq(kill(taker, SIGKILL), 0);
		cr_assert_eq(waitpid(taker, &status, 0), taker);
		cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
		expect_alive();
	}
	cr_assert_eq(copy->threads[0].result, CW_STACK_TAKEN);
}

/* ---- at every step ---- */

static void kill_and_reap(pid_t pid)
{
	int status;

	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, &status, __WALL), pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
}

/* The kernel lets go before the killer hears of the death: there is nothing to wait for. */
static void expect_untouched(unsigned step)
{
	char state = state_of(target);

	cr_assert(state != 't' && state != 'T', "state %c after step %u", state, step);
	expect_alive();
}

static int take(void *arg)
{
	return cw_stack_take(arg, 20000);
}

/* Returns how many steps there were. */
static unsigned kill_taker_at_every_step(struct cw_stack_copy *copy)
{
	for (unsigned step = 1; step < TRACED_MAX_STEPS; step++) {
		pid_t taker;
		long call;

		copy->next = 0;
		copy->held_ns = 0;
		taker = traced_start(take, copy);
		if (!traced_run(taker, step, &call)) {
			cr_assert_eq(call, TRACED_ENDED);
			expect_untouched(step);
			return step;
		}
		kill_and_reap(taker);
		expect_untouched(step);
	}
	cr_assert_fail("more than %d steps", TRACED_MAX_STEPS);
	return 0;
}

Test(stack_kill, lets_the_rank_run_on_when_the_taker_is_killed_at_each_of_its_steps)
{
	struct cw_stack_copy *copy;
	unsigned steps;

	start_target(spin_kernel, 0);
	expect_alive();
	copy = traced_copy();
	steps = kill_taker_at_every_step(copy);
	cr_assert_gt(steps, 20); /* seize, interrupt, wait, registers, stack, detach, … */
	cr_assert_eq(copy->threads[0].result, CW_STACK_TAKEN);
}

Test(stack_kill, leaves_threads_alone_when_the_rank_has_been_held_for_long_enough)
{
	struct cw_stack_copy *copy;

	start_target(run_threads, 0);
	wait_until_in(target, SYS_read, 3);
	copy = traced_copy();
	copy->held_ns = copy->budget_ns;
	cr_assert_eq(cw_stack_take(copy, 1000), 0);
	cr_assert_eq(copy->n_threads, 4);
	for (uint32_t i = 0; i < copy->n_threads; i++)
		cr_assert_eq(copy->threads[i].result, CW_STACK_SPENT);
	do { /* a taker without a processor may hold a thread for long */
		copy->next = 0;
		copy->held_ns = 0;
		cr_assert_eq(cw_stack_take(copy, 20000), 0);
		cr_assert_eq(copy->threads[0].result, CW_STACK_TAKEN);
		cr_assert_gt(copy->held_ns, 0);
	} while (copy->held_ns >= copy->budget_ns);
	finish_reader();
}

static void *write_to_frozen(void *arg)
{
	int fd = open(frozen.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "x", 1) != 1)
		_exit(1);
	atomic_fetch_add(&board->ready, 1);
	return NULL;
}

static int run_with_writer(void)
{
	pthread_t t;

	(void)close(frozen.guard_fd); /* else the guard waits for us, and we for the guard */
	pthread_create(&t, NULL, write_to_frozen, NULL);
	return spin_kernel();
}

Test(stack_kill, leaves_a_rank_in_uninterruptible_sleep_as_it_is)
{
	struct cw_stack_copy *copy;
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
	pid_t writer;

	if (!frozen_fs_mount(&frozen))
		cr_skip_test("needs root, a loop device and mkfs.ext4");
	cr_assert(frozen_fs_freeze(&frozen));
	start_target(run_with_writer, 0);
	expect_alive();
	do {
		copy = traced_copy();
		cr_assert_lt(now_ns(), deadline);
	} while (copy->n_threads < 2);
	writer = copy->threads[0].tid == target ? copy->threads[1].tid : copy->threads[0].tid;
	wait_for_state(writer, 'D');
	cr_assert_gt(kill_taker_at_every_step(copy), 20);
	cr_assert_eq(state_of(writer), 'D');
	frozen_fs_thaw(&frozen);
	while (atomic_load(&board->ready) == 0 && now_ns() < deadline)
		sched_yield();
	cr_assert_eq(atomic_load(&board->ready), 1, "the write never came to its end");
}

/* The whole child, which has the taker as a child of its own. */
static int look(void *arg)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return cw_stack_child(fd, arg);
}

/* Takers that outlive their parent end by themselves: their parent's death is their signal. */
static void reap_orphans(void)
{
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
	char text[256];
	ssize_t n;

	do {
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		n = cw_procfs_read_task(getpid(), getpid(), "children", text, sizeof(text));
		cr_assert_gt(n, 0); /* the target is one */
		if (!strchr(text, ' ') || strchr(text, ' ')[1] == '\0')
			return;
		sched_yield();
	} while (now_ns() < deadline);
	cr_assert_fail("a taker lives on: children %s", text);
}

Test(stack_kill, lets_the_rank_run_on_when_the_child_above_the_taker_is_killed_at_each_step)
{
	struct cw_stack_target t;
	unsigned step, waits = 0;

	start_target(spin_kernel, 0);
	expect_alive();
	t = target_of(target, 0);
	/* Behind the wait for the taker, nothing more is done to the rank. */
	for (step = 1; step < TRACED_MAX_STEPS && waits < 3; step++) {
		pid_t child = traced_start(look, &t);
		long call;

		cr_assert(traced_run(child, step, &call), "no taker was waited for");
		waits += call == SYS_wait4 || waits > 0;
		kill_and_reap(child);
		reap_orphans();
		expect_untouched(step);
	}
	cr_assert_eq(waits, 3);
}

/* ---- uninterruptible sleep ---- */

static int run_writer(void)
{
	(void)close(frozen.guard_fd);
	int fd = open(frozen.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return write(fd, "x", 1) == 1 ? 0 : 1;
}

Test(stack_kill, leaves_threads_in_uninterruptible_sleep_alone)
{
	struct cw_stack_target t;
	json_t *native;
	int status;

	if (!frozen_fs_mount(&frozen))
		cr_skip_test("needs root, a loop device and mkfs.ext4");
	cr_assert(frozen_fs_freeze(&frozen));
	start_target(run_writer, 0);
	wait_for_state(target, 'D');
	t = target_of(target, 0);
	native = look_at(&t);
	cr_assert_str_eq(text_of(native, "status"), "refused");
	cr_assert_not_null(strstr(text_of(native, "reason"), "state D"));
	json_decref(native);
	frozen_fs_thaw(&frozen);
	cr_assert_eq(waitpid(target, &status, 0), target);
	target = 0;
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}
