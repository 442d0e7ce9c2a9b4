/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/liveness.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/pidfd.h"
#include "model/snapshot.h"

#define DEADLINE_MS 120000

struct child {
	pid_t pid;
	int pidfd, proc_fd;
};

/* A child that ends by itself with exit_code, or, below 0, waits to be killed. */
static struct child start(int exit_code)
{
	struct child c = { .pid = fork() };

	if (c.pid == 0) {
		if (exit_code < 0)
			for (;;)
				pause();
		_exit(exit_code);
	}
	c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
	c.proc_fd = cw_procstat_open(c.pid);
	cr_assert_geq(c.pidfd, 0);
	return c;
}

static void wait_until_ended(const struct child *c)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

	cr_assert_eq(poll(&p, 1, DEADLINE_MS), 1);
	cr_assert(cw_pidfd_has_ended(c->pidfd));
}

static void finish(struct child *c)
{
	close(c->pidfd);
	close(c->proc_fd);
}

Test(liveness, tells_the_exit_code_of_a_zombie)
{
	struct child c = start(3);
	struct cw_ending end;

	wait_until_ended(&c);
	cr_assert_eq(cw_liveness_end(c.pidfd, c.proc_fd, true, &end), 0);
	cr_assert_eq(end.liveness, CW_LIVE_EXITED);
	cr_assert_eq(end.exit_code, 3);
	cr_assert_eq(waitpid(c.pid, NULL, 0), c.pid);
	finish(&c);
}

Test(liveness, tells_the_signal_of_a_zombie)
{
	struct child c = start(-1);
	struct cw_ending end;

	cr_assert_not(cw_pidfd_has_ended(c.pidfd));
	kill(c.pid, SIGKILL);
	wait_until_ended(&c);
	cr_assert_eq(cw_liveness_end(c.pidfd, c.proc_fd, true, &end), 0);
	cr_assert_eq(end.liveness, CW_LIVE_KILLED);
	cr_assert_eq(end.term_signal, SIGKILL);
	cr_assert_eq(waitpid(c.pid, NULL, 0), c.pid);
	finish(&c);
}

/* The kernel shows exit code 0 to strangers: the daemon must not take it for a success. */
Test(liveness, does_not_believe_a_zombie_that_it_may_not_look_into)
{
	struct child c = start(3);
	struct cw_ending end;

	wait_until_ended(&c);
	cr_assert_eq(cw_liveness_end(c.pidfd, c.proc_fd, false, &end), CW_LIVENESS_AGAIN);
	cr_assert_eq(waitpid(c.pid, NULL, 0), c.pid);
	finish(&c);
}

Test(liveness, learns_from_the_pidfd_after_somebody_else_reaped)
{
	struct child c = start(5);
	struct cw_ending end;
	int r;

	cr_assert_eq(waitpid(c.pid, NULL, 0), c.pid);
	cr_assert(cw_pidfd_has_ended(c.pidfd));
	r = cw_liveness_end(c.pidfd, c.proc_fd, true, &end);
	finish(&c);
	if (r == CW_LIVENESS_AGAIN)
		cr_skip_test("kernel without PIDFD_INFO_EXIT (before 6.15)");
	cr_assert_eq(end.liveness, CW_LIVE_EXITED);
	cr_assert_eq(end.exit_code, 5);
}

Test(liveness, tells_stopped_from_traced)
{
	cr_assert_eq(cw_liveness_of_state('T'), CW_LIVE_STOPPED);
	cr_assert_eq(cw_liveness_of_state('t'), CW_LIVE_TRACED);
	cr_assert_eq(cw_liveness_of_state('D'), CW_LIVE_ALIVE);
}

/* ---- orderly stops ---- */

#define EXITED(code, s)                                                                            \
	{                                                                                          \
		.end = { .liveness = CW_LIVE_EXITED, .exit_code = (code) },                        \
		.ended_ns = (s)*CW_NS_PER_S                                                        \
	}
#define KILLED(sig, s)                                                                             \
	{                                                                                          \
		.end = { .liveness = CW_LIVE_KILLED, .term_signal = (sig) },                       \
		.ended_ns = (s)*CW_NS_PER_S                                                        \
	}
#define ALIVE                                                                                      \
	{                                                                                          \
		.ended_ns = 0                                                                      \
	}

struct stop_case {
	const char *name;
	struct cw_death deaths[3]; /* the first is judged */
	bool is_shutdown;
};

static const struct stop_case stop_cases[] = {
	{ "killed alone", { KILLED(SIGKILL, 100), ALIVE, ALIVE }, false },
	{ "SIGTERM", { KILLED(SIGTERM, 100), ALIVE, ALIVE }, true },
	{ "SIGINT", { KILLED(SIGINT, 100), ALIVE, ALIVE }, true },
	{ "exit 143 of a handler", { EXITED(143, 100), ALIVE, ALIVE }, true },
	{ "exit 1 alone", { EXITED(1, 100), ALIVE, ALIVE }, false },
	{ "exit 1 with a SIGTERM beside", { EXITED(1, 100), KILLED(SIGTERM, 101), ALIVE }, true },
	{ "exit 1 long before", { EXITED(1, 100), KILLED(SIGTERM, 103), ALIVE }, false },
	{ "two crash, one lives", { EXITED(1, 100), EXITED(1, 101), ALIVE }, false },
	{ "SIGKILL for all",
	  { KILLED(SIGKILL, 100), KILLED(SIGKILL, 100), KILLED(SIGKILL, 101) },
	  true },
	{ "SIGSEGV for all",
	  { KILLED(SIGSEGV, 100), KILLED(SIGSEGV, 100), KILLED(SIGSEGV, 101) },
	  false },
	{ "all abort",
	  { KILLED(SIGABRT, 100), KILLED(SIGABRT, 100), KILLED(SIGABRT, 101) },
	  false },
	{ "an abort with a SIGTERM beside",
	  { KILLED(SIGABRT, 100), KILLED(SIGTERM, 101), ALIVE },
	  true },
	{ "exit 1 for all", { EXITED(1, 100), EXITED(1, 100), EXITED(1, 101) }, true },
	{ "last one, the others long gone",
	  { KILLED(SIGKILL, 100), EXITED(0, 10), EXITED(0, 10) },
	  false },
};

Test(liveness, tells_a_shutdown_from_a_crash)
{
	for (size_t i = 0; i < sizeof(stop_cases) / sizeof(stop_cases[0]); i++) {
		const struct stop_case *c = &stop_cases[i];

		cr_assert_eq(cw_death_is_shutdown(&c->deaths[0], c->deaths, 3), c->is_shutdown,
			     "%s", c->name);
	}
}

Test(liveness, knows_a_crash_of_a_whole_node_by_the_kernels_word)
{
	struct cw_death d[2] = { EXITED(1, 100), EXITED(1, 100) };

	cr_assert(cw_death_is_shutdown(&d[0], d, 2), "a handler may have done that");
	d[0].is_own = true;
	cr_assert_not(cw_death_is_shutdown(&d[0], d, 2));
	d[1].end = (struct cw_ending){ .liveness = CW_LIVE_KILLED, .term_signal = SIGTERM };
	cr_assert(cw_death_is_shutdown(&d[0], d, 2), "its neighbour was asked to end");
}

Test(liveness, blames_no_rank_that_goes_with_its_launcher)
{
	struct cw_death d[2] = { KILLED(SIGKILL, 100), ALIVE };

	d[0].launcher_gone_ns = 99 * CW_NS_PER_S;
	cr_assert(cw_death_is_shutdown(&d[0], d, 2));
	d[0].launcher_gone_ns = 20 * CW_NS_PER_S; /* nohup: it has lived without for long */
	cr_assert_not(cw_death_is_shutdown(&d[0], d, 2));
	cr_assert_not(cw_death_is_shutdown(&d[1], d, 2));
}
