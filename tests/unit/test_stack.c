/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes are looked at: forks of the test itself, which therefore has functions with the
 * names a rank's might have.
 */
#include "daemon/stack.h"

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
#include "daemon/capture_child.h"
#include "daemon/procfs.h"
#include "daemon/stack_take.h"
#include "tests/unit/frozen_fs.h"

#define NOBODY 65534

/* Shared with the target. */
struct board {
	atomic_uint ready;
	atomic_uint_fast64_t beats;
	atomic_uint interrupted; /* calls that returned EINTR */
};

static struct board *board;
static int pipe_fds[2];
static pid_t target;

static int64_t now_ns(void)
{
	return cw_clock_now_ns(&cw_clock_system);
}

static void set_up(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	cr_assert_neq(board, MAP_FAILED);
	cr_assert_eq(pipe(pipe_fds), 0);
}

static void tear_down(void)
{
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
}

TestSuite(stack, .init = set_up, .fini = tear_down, .timeout = 120);

/* ---- what a target does ---- */

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE static int data_loader_next(int fd)
{
	volatile char sample = 0;
	char byte = 0;
	ssize_t n = read(fd, &byte, 1);

	if (n < 0 && errno == EINTR)
		atomic_fetch_add(&board->interrupted, 1);
	sample = byte;
	return n == 1 ? sample : -1;
}

NOINLINE static int train_step(int fd)
{
	volatile int loss = data_loader_next(fd);

	return loss + 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

NOINLINE static void *proxy_progress(void *arg)
{
	pthread_setname_np(pthread_self(), "proxy");
	pthread_mutex_lock(&lock);
	atomic_fetch_add(&board->ready, 1);
	for (;;)
		pthread_cond_wait(&never, &lock);
	return NULL;
}

NOINLINE static void *poll_events(void *arg)
{
	struct epoll_event ev;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	pthread_setname_np(pthread_self(), "poller");
	atomic_fetch_add(&board->ready, 1);
	for (;;) {
		if (epoll_wait(fd, &ev, 1, -1) < 0 && errno == EINTR)
			atomic_fetch_add(&board->interrupted, 1);
	}
	return NULL;
}

static void *agent_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "collwatch-link");
	atomic_fetch_add(&board->ready, 1);
	for (;;)
		pause();
	return NULL;
}

static int run_reader(void)
{
	return train_step(pipe_fds[0]) == 'x' + 1 ? 0 : 1;
}

static int run_threads(void)
{
	static void *(*const start[])(void *) = { proxy_progress, poll_events, agent_thread };
	pthread_t t;

	for (size_t i = 0; i < 3; i++)
		pthread_create(&t, NULL, start[i], NULL);
	return run_reader();
}

NOINLINE static int spin_kernel(void)
{
	for (;;)
		atomic_fetch_add(&board->beats, 1);
	return 0;
}

NOINLINE static pid_t start_target(int (*run)(void), uid_t uid)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid > 0)
		return target = pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (uid && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
		_exit(99);
	if (uid)
		prctl(PR_SET_DUMPABLE, 1);
	_exit(run());
}

/* Until the main thread sleeps in this system call (and n threads have said so). */
static void wait_until_in(pid_t tid, long number, unsigned n)
{
	int64_t deadline = now_ns() + 20 * CW_NS_PER_S;
	struct cw_procfs_syscall sc = { .number = -1 };
	char text[256];

	while (now_ns() < deadline) {
		if (atomic_load(&board->ready) >= n &&
		    cw_procfs_read_task(target, tid, "syscall", text, sizeof(text)) > 0 &&
		    cw_procfs_parse_syscall(text, &sc) == 0 && sc.number == number)
			return;
		sched_yield();
	}
	cr_assert_fail("the target never came to system call %ld", number);
}

static char state_of(pid_t pid)
{
	struct cw_procfs_stat st = { .state = '?' };

	(void)cw_procfs_stat(pid, 0, &st);
	return st.state;
}

static void wait_for_state(pid_t pid, char state)
{
	int64_t deadline = now_ns() + 20 * CW_NS_PER_S;

	while (now_ns() < deadline && state_of(pid) != state)
		sched_yield();
	cr_assert_eq(state_of(pid), state, "state %c", state_of(pid));
}

/* ---- looking ---- */

struct look {
	struct event_base *base;
	json_t *native;
	enum cw_child_end end;
	bool is_done;
};

static int look_main(int out_fd, const void *arg)
{
	return cw_stack_child(out_fd, arg);
}

static void on_looked(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct look *look = user;

	look->end = end;
	look->native = cw_stack_read_output(output, len, end == CW_CHILD_EXITED);
	look->is_done = true;
	event_base_loopbreak(look->base);
}

static struct cw_stack_target target_of(pid_t pid, uid_t uid)
{
	struct cw_procfs_stat st = { 0 };

	cr_assert_eq(cw_procfs_stat(pid, 0, &st), 0);
	return (struct cw_stack_target){ pid, st.start_ticks, uid, uid };
}

static json_t *look_at(const struct cw_stack_target *t)
{
	struct look look = { .base = event_base_new() };
	struct cw_child_config config = { .main = look_main,
					  .arg = t,
					  .deadline_ms = 30000,
					  .max_output = CW_STACK_MAX_OUTPUT,
					  .fn = on_looked,
					  .user = &look };
	struct cw_children *pool = NULL;
	struct cw_child *child = NULL;

	cr_assert_eq(cw_children_new(look.base, &pool), 0);
	cr_assert_eq(cw_child_start(pool, &config, &child), 0);
	event_base_dispatch(look.base);
	cr_assert(look.is_done);
	cr_assert_eq(look.end, CW_CHILD_EXITED, "end %d", look.end);
	cw_children_free(pool);
	event_base_free(look.base);
	return look.native;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const json_t *thread_named(const json_t *native, const char *name)
{
	json_t *thread;
	size_t i;

	json_array_foreach (json_object_get(native, "threads"), i, thread) {
		if (strcmp(text_of(thread, "name"), name) == 0)
			return thread;
	}
	return NULL;
}

/* Index of the frame with that symbol, -1 = none. */
static int frame_of(const json_t *thread, const char *symbol)
{
	json_t *frame;
	size_t i;

	json_array_foreach (json_object_get(thread, "frames"), i, frame) {
		if (strcmp(text_of(frame, "symbol"), symbol) == 0)
			return (int)i;
	}
	return -1;
}

static void expect_reader(const json_t *native)
{
	const json_t *main_thread = json_array_get(json_object_get(native, "threads"), 0);
	int inner = frame_of(main_thread, "data_loader_next");
	const json_t *frame = json_array_get(json_object_get(main_thread, "frames"),
					     inner < 0 ? 0 : (size_t)inner);
	char *text = json_dumps(native, JSON_INDENT(1));

	cr_assert_geq(inner, 1, "%s", text); /* below read() */
	cr_assert_gt(frame_of(main_thread, "train_step"), inner, "%s", text);
	cr_assert_gt(frame_of(main_thread, "start_target"), frame_of(main_thread, "train_step"));
	cr_assert_not_null(strstr(text_of(frame, "file"), "test_stack.c"), "%s", text);
	cr_assert_gt(json_integer_value(json_object_get(frame, "line")), 0);
	cr_assert_str_eq(text_of(frame, "module"), "test_stack");
	free(text);
}

static void finish_reader(void)
{
	int status = 0;

	cr_assert_eq(write(pipe_fds[1], "x", 1), 1);
	cr_assert_eq(waitpid(target, &status, 0), target);
	target = 0;
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
	cr_assert_eq(atomic_load(&board->interrupted), 0);
}

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
	cr_assert_lt(json_number_value(json_object_get(native, "held_ms")), 250);
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

static void expect_alive(void)
{
	uint64_t beats = atomic_load(&board->beats);
	int64_t deadline = now_ns() + 20 * CW_NS_PER_S;
	char text[8192], *tracer;

	while (atomic_load(&board->beats) == beats && now_ns() < deadline)
		sched_yield();
	cr_assert_gt(atomic_load(&board->beats), beats, "the target is held, state %c",
		     state_of(target));
	cr_assert_gt(cw_procfs_read(target, "status", text, sizeof(text)), 0);
	tracer = strstr(text, "TracerPid:\t");
	cr_assert_not_null(tracer);
	cr_assert_eq(strncmp(tracer, "TracerPid:\t0\n", 13), 0, "%.20s", tracer);
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

/* A taker that takes for ever and counts. */
static pid_t start_taker(struct cw_stack_copy *copy, atomic_uint *rounds)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		copy->next = 0;
		if (cw_stack_take(copy, 1000) != 0)
			_exit(1);
		atomic_fetch_add(rounds, 1);
	}
}

Test(stack, lets_the_rank_run_on_when_the_taker_is_killed_at_any_moment)
{
	struct cw_stack_copy *copy = NULL;
	unsigned seed = 1;

	start_target(spin_kernel, 0);
	expect_alive();
	cr_assert_eq(cw_stack_copy_new(target, 0, &copy), 0);
	for (int i = 0; i < 200; i++) {
		unsigned from = atomic_load(&board->ready),
			 after_ns = (unsigned)rand_r(&seed) % 200000;
		int64_t start, deadline = now_ns() + 20 * CW_NS_PER_S;
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

static struct frozen_fs frozen;

static int run_writer(void)
{
	int fd = open(frozen.file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return write(fd, "x", 1) == 1 ? 0 : 1;
}

Test(stack, leaves_threads_in_uninterruptible_sleep_alone)
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
	native = cw_stack_read_output(buf, (size_t)n, true);
	cr_assert_str_eq(text_of(native, "status"), "refused", "%.*s", (int)n, buf);
	cr_assert_not_null(strstr(text_of(native, "reason"), "right"));
	json_decref(native);
	finish_reader();
}
