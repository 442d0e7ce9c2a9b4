/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit on the time that a taker of stacks holds a rank. The taker may be stopped or get no
 * processor, and so cannot let go: then the kernel kills it.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/evidence/stack_confine.h"
#include "daemon/evidence/stack_take.h"
#include "tests/support/evidence/stack_fixture.h"
#include "tests/support/evidence/traced_fixture.h"

static void tear_down(void)
{
	traced_tear_down();
	stack_fixture_tear_down();
}

TestSuite(stack_limit, .init = stack_fixture_set_up, .fini = tear_down, .timeout = 300);

struct brief {
	struct cw_stack_copy *copy;
	uint32_t limit_ms;
};

static int take_briefly(void *arg)
{
	const struct brief *b = arg;

	b->copy->next = 0;
	b->copy->held_ns = 0;
	return cw_stack_take(b->copy, b->limit_ms);
}

/* It may stop only now: the taker's last request takes its time. */
static void expect_let_go(unsigned step)
{
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
	uint64_t beats = atomic_load(&board->beats);

	while (now_ns() < deadline) {
		if (state_of(target) != 't' && atomic_load(&board->beats) != beats)
			return;
		sched_yield();
	}
	cr_assert_fail("held by a taker stopped at step %u, or no host activity: state %c", step,
		       state_of(target));
}

/* Leaves the process untraced and stopped. False: it has ended instead. */
static bool leave_stopped(pid_t pid)
{
	int status;

	cr_assert_eq(kill(pid, SIGSTOP), 0);
	cr_assert_eq(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	cr_assert_eq(waitpid(pid, &status, __WALL | WUNTRACED), pid);
	/* It may have been about to end, or its time was up. */
	cr_assert(WIFSTOPPED(status) || WIFEXITED(status) || WTERMSIG(status) == SIGKILL,
		  "status %x", status);
	return WIFSTOPPED(status);
}

/* At how many steps it held the rank when it was stopped, as far as was seen. */
static unsigned stop_at_each_step(struct brief *brief)
{
	unsigned step, held = 0;
	pid_t taker;
	long call;

	for (step = 1; step < TRACED_MAX_STEPS; step++) {
		taker = traced_start(take_briefly, brief);
		if (traced_run(taker, step, &call)) {
			bool is_there = leave_stopped(taker);

			held += state_of(target) == 't';
			expect_let_go(step);
			if (is_there) {
				cr_assert_eq(kill(taker, SIGKILL), 0);
				cr_assert_eq(waitpid(taker, NULL, __WALL), taker);
			}
		} else if (call == TRACED_CUT_SHORT) {
			brief->limit_ms *= 2; /* this machine is busy: the step again */
			step--;
		} else {
			break;
		}
		expect_alive();
	}
	cr_assert_lt(step, TRACED_MAX_STEPS);
	return held;
}

Test(stack_limit, lets_the_rank_run_on_when_the_taker_is_stopped_at_each_of_its_steps)
{
	struct brief brief = { .limit_ms = 100 };
	unsigned held;

	start_target(spin_kernel, 0);
	expect_alive();
	brief.copy = traced_copy();
	/*
	 * On a busy machine its time may be up before the taker's first look: then we allow more.
	 */
	while ((held = stop_at_each_step(&brief)) <= 3 && brief.limit_ms < 3000)
		brief.limit_ms *= 2;
	cr_assert_gt(held, 3, "stopped while it held the rank: at %u steps", held);
}

/* The limits on the taker while it runs, as seen from outside. */
struct rules {
	pid_t taker;
	int64_t limit_ns;
	int64_t armed_ns; /* when the kernel will kill it, 0 = not */
	int64_t ran_ns;   /* the thread certainly ran then, 0 = none is traced */
	int64_t asked_ns; /* the last question whether it has stopped */
	unsigned held;
	bool is_held;
};

static void check_arming(struct rules *r, const uint64_t *args)
{
	struct itimerspec it;
	struct iovec local = { &it, sizeof(it) };
	struct iovec remote = { (void *)(uintptr_t)args[2], sizeof(it) };

	cr_assert_eq(process_vm_readv(r->taker, &local, 1, &remote, 1, 0), (ssize_t)sizeof(it));
	cr_assert_eq(args[1], TIMER_ABSTIME);
	r->armed_ns = it.it_value.tv_sec * CW_NS_PER_S + it.it_value.tv_nsec;
	cr_assert(!r->is_held, "armed anew while the thread is held");
	cr_assert(!r->ran_ns || r->armed_ns <= r->ran_ns + r->limit_ns);
}

static void check_entry(struct rules *r, uint64_t call, const uint64_t *args)
{
	if (call == SYS_timer_settime) {
		check_arming(r, args);
	} else if (call == SYS_wait4) {
		r->asked_ns = now_ns();
	} else if (call == SYS_ptrace && args[0] == PTRACE_SEIZE) {
		r->ran_ns = now_ns();
		cr_assert_neq(r->armed_ns, 0);
		cr_assert_leq(r->armed_ns, r->ran_ns + r->limit_ns);
	} else if (call == SYS_ptrace && args[0] == PTRACE_DETACH) {
		cr_assert(r->is_held);
		r->is_held = false;
		r->ran_ns = 0;
	}
}

/* The answer to "has it stopped?" */
static void check_answer(struct rules *r, int64_t answer)
{
	r->asked_ns = answer == 0 ? r->asked_ns : 0;
	if (answer == 0)
		r->ran_ns = r->asked_ns;
	r->is_held = answer > 0;
	r->held += answer > 0;
}

/* Nothing here depends on how long anything takes: it is the time of the kernel's kill that counts.
 */
Test(stack_limit, a_thread_is_held_only_while_the_kernel_would_kill_the_taker_within_the_limit)
{
	struct brief brief = { .limit_ms = 20000 };
	struct rules r = { .limit_ns = 20000 * CW_NS_PER_MS };
	uint64_t call = 0;
	long number;

	start_target(run_threads, 0);
	wait_until_in(target, SYS_read, 3);
	brief.copy = traced_copy();
	r.taker = traced_start(take_briefly, &brief);
	while (traced_run(r.taker, 1, &number)) {
		struct __ptrace_syscall_info info;

		cr_assert_gt(ptrace(PTRACE_GET_SYSCALL_INFO, r.taker, sizeof(info), &info), 0);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			check_entry(&r, call = info.entry.nr, (const uint64_t *)info.entry.args);
		else if (call == SYS_wait4)
			check_answer(&r, info.exit.rval);
	}
	cr_assert_eq(number, TRACED_ENDED);
	cr_assert_eq(r.held, 2); /* the reader and the thread that waits */
	finish_reader();
}

Test(stack_limit, who_holds_a_thread_goes_first)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (cw_stack_confine_taker() < 0)
			_exit(1);
		_exit(getpriority(PRIO_PROCESS, 0) == -20 ? 0 : 77);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		cr_skip_test("no right to a higher priority here");
	cr_assert_eq(status, 0, "%#x", (unsigned)status);
}
