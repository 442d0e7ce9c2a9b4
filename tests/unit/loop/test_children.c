/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/children.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/close_from.h"
#include "tests/support/node/frozen_fs.h"

static int say(int out_fd, const void *arg);
static int hang(int out_fd, const void *arg);
static int list_descriptors(int out_fd, const void *arg);
static int leave_a_grandchild(int out_fd, const void *arg);
static int become_another_user(int out_fd, const void *arg);
static int crash(int out_fd, const void *arg);

static int say_job(int fd)
{
	return cw_child_run(fd, say);
}

static int hang_job(int fd)
{
	return cw_child_run(fd, hang);
}

static int list_descriptors_job(int fd)
{
	return cw_child_run(fd, list_descriptors);
}

static int leave_a_grandchild_job(int fd)
{
	return cw_child_run(fd, leave_a_grandchild);
}

static int become_another_user_job(int fd)
{
	return cw_child_run(fd, become_another_user);
}

static int crash_job(int fd)
{
	return cw_child_run(fd, crash);
}

static const struct cw_fork_job jobs[] = {
	{ say_job, 0 },
	{ hang_job, 0 },
	{ list_descriptors_job, 0 },
	{ leave_a_grandchild_job, 0 },
	{ become_another_user_job, CW_FORK_ALL_CAPABILITIES },
	{ crash_job, 0 },
};

/* Deadline of children that end by themselves. */
#define DEADLINE_MS 120000

static struct event_base *base;
static struct cw_children *pool;

static struct {
	unsigned calls;
	enum cw_child_end end;
	char output[4096];
	size_t len;
} result;

static void set_up(void)
{
	base = event_base_new();
	cr_assert_eq(cw_children_new(base, &pool), 0);
}

static void tear_down(void)
{
	cw_children_free(pool);
	event_base_free(base);
}

TestSuite(children, .init = set_up, .fini = tear_down, .timeout = 300);

static void on_done(enum cw_child_end end, const char *output, size_t len, void *user)
{
	result.calls++;
	result.end = end;
	result.len = len;
	memcpy(result.output, output, len < sizeof(result.output) ? len : sizeof(result.output));
	event_base_loopbreak(base);
}

static struct cw_child *start(cw_child_main_fn main, const void *arg, uint32_t deadline_ms)
{
	struct cw_child_config config = { .main = main,
					  .arg = arg,
					  .deadline_ms = deadline_ms,
					  .max_output = 1000,
					  .fn = on_done };
	struct cw_child *child = NULL;

	cr_assert_eq(cw_child_start(pool, &config, &child), 0);
	cr_assert_eq(result.calls, 0);
	return child;
}

static void on_too_late(evutil_socket_t fd, short what, void *arg)
{
	cr_assert_fail("nothing within 150 s");
}

static void wait_for_result(void)
{
	struct event *deadline = evtimer_new(base, on_too_late, NULL);
	struct timeval tv = { 150, 0 };

	evtimer_add(deadline, &tv);
	while (result.calls == 0)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(deadline);
	cr_assert_eq(result.calls, 1);
}

static int say(int out_fd, const void *arg)
{
	return write(out_fd, arg, strlen(arg)) == (ssize_t)strlen(arg) ? 0 : 1;
}

Test(children, brings_back_what_the_child_wrote)
{
	char text[] = "hello";

	start(say, text, DEADLINE_MS);
	memset(text, 'x', 5); /* the child has its own copy */
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_EXITED);
	cr_assert_eq(result.len, 5);
	cr_assert_arr_eq(result.output, "hello", 5);
}

static int crash(int out_fd, const void *arg)
{
	(void)!write(out_fd, "some", 4);
	raise(SIGKILL);
	return 0;
}

Test(children, keeps_the_output_of_one_that_crashes)
{
	start(crash, NULL, DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_CRASHED);
	cr_assert_arr_eq(result.output, "some", 4);
}

static int hang(int out_fd, const void *arg)
{
	(void)!write(out_fd, "a", 1);
	for (;;)
		pause();
	return 0;
}

Test(children, kills_one_that_hangs)
{
	/* On a busy machine its time may be up before it has come to write: then it gets more. */
	for (uint32_t ms = 100; result.len == 0 && ms < DEADLINE_MS; ms *= 2) {
		result.calls = 0;
		start(hang, NULL, ms);
		wait_for_result();
		cr_assert_eq(result.end, CW_CHILD_TIMED_OUT);
	}
	cr_assert_eq(result.len, 1);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
}

static int talk(int out_fd, const void *arg)
{
	while (write(out_fd, "0123456789", 10) > 0)
		;
	return 0;
}

Test(children, kills_one_that_does_not_stop_talking)
{
	start(talk, NULL, DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_OVERFLOW);
	cr_assert_eq(result.len, 1000);
}

static int list_descriptors(int out_fd, const void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;

	while ((d = readdir(dir))) {
		if (d->d_name[0] != '.' && atoi(d->d_name) != dirfd(dir))
			dprintf(out_fd, "%s ", d->d_name);
	}
	return 0;
}

Test(children, has_no_descriptors_but_its_own)
{
	int secret = open("/dev/null", O_RDONLY); /* not even CLOEXEC */

	cr_assert_geq(fcntl(secret, F_DUPFD, 200), 200);
	start(list_descriptors, NULL, DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.len, 8, "%.*s", (int)result.len, result.output);
	cr_assert_arr_eq(result.output, "0 1 2 3 ", 8);
}

/* As before Linux 5.9, or in a sandbox that is older than the call. */
static void forbid_close_range(uint32_t action)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	cr_assert_eq(seccomp_rule_add(filter, action, SYS_close_range, 0), 0);
	cr_assert_eq(seccomp_load(filter), 0);
	seccomp_release(filter);
}

static void expect_only_its_own_of_thousands(int error)
{
	int secret = open("/dev/null", O_RDONLY);

	/* More than one reading of the directory brings. */
	for (int i = 0; i < 900; i++)
		cr_assert_geq(fcntl(secret, F_DUPFD, 20), 20);
	forbid_close_range(SCMP_ACT_ERRNO((uint16_t)error));
	cr_assert_lt(syscall(SYS_close_range, ~0u, ~0u, 0), 0);
	cr_assert_eq(errno, error);
	start(list_descriptors, NULL, DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.len, 8, "%.*s", (int)result.len, result.output);
	cr_assert_arr_eq(result.output, "0 1 2 3 ", 8);
}

Test(children, has_no_others_where_the_kernel_has_no_close_range)
{
	expect_only_its_own_of_thousands(ENOSYS);
}

Test(children, has_no_others_where_a_sandbox_forbids_close_range)
{
	expect_only_its_own_of_thousands(EPERM);
}

/* The grandchild holds the pipe and would keep the reader waiting. */
static int leave_a_grandchild(int out_fd, const void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		hang(*(const int *)arg, NULL);
	return 0;
}

Test(children, does_not_wait_for_what_a_child_leaves_behind_and_ends_it)
{
	int status;

	/* Orphans come to us: so the grandchild's end is seen. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	start(leave_a_grandchild, &(int){ 1 }, DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_EXITED);
	cr_assert_gt(waitpid(-1, &status, 0), 0);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

Test(children, reports_nothing_once_cancelled)
{
	siginfo_t info;

	cw_child_cancel(start(hang, NULL, DEADLINE_MS));
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(errno, ECHILD);
	cr_assert_eq(result.calls, 0);
}

Test(children, dies_with_the_pool)
{
	start(hang, NULL, DEADLINE_MS);
	pool = cw_children_free(pool);
	(void)alarm(120); /* ends a child that no other process kills */
	while (waitpid(-1, NULL, 0) > 0)
		; /* it had died too late for the pool, on a busy machine */
	(void)alarm(0);
	cr_assert_eq(errno, ECHILD);
	cr_assert_eq(result.calls, 0);
}

/* While this is set, no descriptor becomes ready in time, and we add up how long poll() would wait.
 */
static bool is_nothing_ready;
static int waited_ms;

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int (*system)(struct pollfd *, nfds_t, int) = dlsym(RTLD_NEXT, "poll");

	if (!is_nothing_ready)
		return system(fds, n, timeout_ms);
	waited_ms += timeout_ms;
	return 0;
}

Test(children, the_pool_waits_once_for_all_that_do_not_die)
{
	for (unsigned i = 0; i < 5; i++)
		start(hang, NULL, DEADLINE_MS);
	is_nothing_ready = true;
	pool = cw_children_free(pool);
	is_nothing_ready = false;
	cr_expect_eq(waited_ms, 200);
	(void)alarm(120);
	while (waitpid(-1, NULL, 0) > 0)
		;
	(void)alarm(0);
}

static int write_file(int out_fd, const void *arg)
{
	int fd = open(arg, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return write(fd, "x", 1) == 1 ? 0 : 1;
}

Test(children, abandons_one_that_does_not_die_and_reaps_it_later)
{
	struct frozen_fs fs = { 0 };

	if (!frozen_fs_mount(&fs))
		cr_skip_test("needs root, a loop device and mkfs.ext4");
	cr_assert(frozen_fs_freeze(&fs));
	/*
	 * A child that dies before it reaches the file dies as others do: then we allow more time.
	 */
	for (uint32_t ms = 100; result.end != CW_CHILD_ABANDONED && ms < DEADLINE_MS; ms *= 2) {
		result.calls = 0;
		start(write_file, fs.file, ms);
		wait_for_result();
	}
	cr_assert_eq(result.end, CW_CHILD_ABANDONED);
	cr_assert_eq(cw_children_abandoned(pool), 1);
	/* Another one is not held up. */
	result.calls = 0;
	start(say, "next", DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_EXITED);
	frozen_fs_thaw(&fs);
	while (cw_children_abandoned(pool) > 0)
		event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(result.calls, 1);
}

/* Ends once its own child sleeps where no signal can end it. */
static int leave_one_that_does_not_die(int out_fd, const void *arg)
{
	char path[64], text[512], *state = NULL;
	pid_t pid = fork();
	ssize_t n;
	int fd;

	if (pid == 0)
		_exit(write_file(out_fd, arg));
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (!state || state[2] != 'D') {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (n <= 0)
			return 1;
		text[n] = '\0';
		state = strrchr(text, ')');
		(void)close(fd);
		sched_yield(); /* the deadline ends it */
	}
	return 0;
}

Test(children, counts_a_process_of_a_child_that_does_not_die)
{
	struct frozen_fs fs = { 0 };

	if (!frozen_fs_mount(&fs))
		cr_skip_test("needs root, a loop device and mkfs.ext4");
	cr_assert(frozen_fs_freeze(&fs));
	start(leave_one_that_does_not_die, fs.file, DEADLINE_MS);
	wait_for_result();
	cr_expect_eq(cw_children_abandoned(pool), 1);
	frozen_fs_thaw(&fs);
	while (cw_children_abandoned(pool) > 0)
		event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(result.calls, 1);
}

/* ---- children of the fork server ---- */

static struct cw_fork_server *start_server(void)
{
	const struct cw_fork_server_config config = { .base = base,
						      .clock = &cw_clock_system,
						      .jobs = jobs,
						      .n_jobs = sizeof(jobs) / sizeof(*jobs) };
	struct cw_fork_server *forks;

	cr_assert_eq(cw_fork_server_new(&config, &forks), 0);
	return forks;
}

static struct cw_child *start_job(struct cw_fork_server *forks, cw_fork_child_fn job,
				  const void *arg, size_t arg_len, uint32_t deadline_ms)
{
	struct cw_child_config config = { .arg = arg,
					  .deadline_ms = deadline_ms,
					  .max_output = 1000,
					  .fn = on_done,
					  .forks = forks,
					  .job = job,
					  .arg_len = arg_len };
	struct cw_child *child = NULL;

	result.calls = 0;
	cr_assert_eq(cw_child_start(pool, &config, &child), 0);
	return child;
}

Test(children, of_the_server_gets_its_argument_and_brings_back_what_it_wrote)
{
	struct cw_fork_server *forks = start_server();
	char text[] = "hello";

	start_job(forks, say_job, text, sizeof(text), DEADLINE_MS);
	memset(text, 'x', 5); /* the child has its own copy */
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_EXITED);
	cr_assert_eq(result.len, 5);
	cr_assert_arr_eq(result.output, "hello", 5);
	cw_fork_server_free(forks);
}

Test(children, of_the_server_keeps_the_output_of_one_that_crashes)
{
	struct cw_fork_server *forks = start_server();

	start_job(forks, crash_job, NULL, 0, DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_CRASHED);
	cr_assert_arr_eq(result.output, "some", 4);
	cw_fork_server_free(forks);
}

Test(children, of_the_server_has_the_descriptors_that_it_was_given)
{
	struct cw_child_config config = { .deadline_ms = DEADLINE_MS,
					  .max_output = 1000,
					  .fn = on_done,
					  .forks = start_server(),
					  .job = list_descriptors_job,
					  .fds = { open("/dev/null", O_RDONLY) },
					  .n_fds = 1 };
	struct cw_child *child;

	cr_assert_eq(cw_child_start(pool, &config, &child), 0);
	close(config.fds[0]);
	wait_for_result();
	cr_assert_eq(result.len, 10, "%.*s", (int)result.len, result.output);
	cr_assert_arr_eq(result.output, "0 1 2 3 4 ", 10);
	cw_fork_server_free(config.forks);
}

Test(children, of_the_server_ends_at_its_deadline)
{
	struct cw_fork_server *forks = start_server();

	/* On a busy machine its time may be up before it has come to write: then it gets more. */
	for (uint32_t ms = 100; result.len == 0 && ms < DEADLINE_MS; ms *= 2) {
		start_job(forks, hang_job, NULL, 0, ms);
		wait_for_result();
		cr_assert_eq(result.end, CW_CHILD_TIMED_OUT);
	}
	cr_assert_eq(result.len, 1);
	cw_fork_server_free(forks);
}

static int become_another_user(int out_fd, const void *arg)
{
	if (setresuid(12345, 12345, 12345) < 0)
		return 1;
	return hang(out_fd, NULL);
}

/* This process may have no right to kill it. */
Test(children, of_the_server_ends_at_its_deadline_as_another_user)
{
	struct cw_fork_server *forks = start_server();

	if (geteuid() != 0)
		cr_skip_test("needs root");
	for (uint32_t ms = 100; result.len == 0 && ms < DEADLINE_MS; ms *= 2) {
		start_job(forks, become_another_user_job, NULL, 0, ms);
		if (ms == 100)
			cr_assert_eq(setresuid(1234, 1234, 1234), 0);
		wait_for_result();
		cr_assert_eq(result.end, CW_CHILD_TIMED_OUT);
	}
	cr_assert_eq(result.len, 1);
	cw_fork_server_free(forks);
}

Test(children, of_the_server_leaves_no_process_behind)
{
	struct cw_fork_server *forks = start_server();
	int arg = 3; /* the grandchild holds the output, whose end is our proof */

	start_job(forks, leave_a_grandchild_job, &arg, sizeof(arg), DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_EXITED);
	cr_assert_eq(cw_children_abandoned(pool), 0);
	cw_fork_server_free(forks);
}

Test(children, of_the_server_is_cancelled_before_and_after_it_exists)
{
	struct cw_fork_server *forks = start_server();

	cw_child_cancel(start_job(forks, hang_job, NULL, 0, DEADLINE_MS));
	start_job(forks, say_job, "x", 2, DEADLINE_MS);
	wait_for_result();
	cr_assert_eq(result.end, CW_CHILD_EXITED);
	cr_assert_arr_eq(result.output, "x", 1);
	cw_child_cancel(start_job(forks, hang_job, NULL, 0, DEADLINE_MS));
	pool = cw_children_free(pool);
	cr_assert_eq(result.calls, 0);
	cw_fork_server_free(forks);
}
