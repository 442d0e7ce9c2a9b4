/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/evidence/stack_fixture.h"

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

struct board *board;
int pipe_fds[2];
pid_t target;

int64_t now_ns(void)
{
	return cw_clock_now_ns(&cw_clock_system);
}

void stack_fixture_set_up(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	cr_assert_neq(board, MAP_FAILED);
	cr_assert_eq(pipe(pipe_fds), 0);
}

void stack_fixture_tear_down(void)
{
	if (target > 0) {
		kill(target, SIGKILL);
		waitpid(target, NULL, 0);
	}
}

/* ---- targets ---- */

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

int run_reader(void)
{
	return train_step(pipe_fds[0]) == 'x' + 1 ? 0 : 1;
}

int run_threads(void)
{
	static void *(*const start[])(void *) = { proxy_progress, poll_events, agent_thread };
	pthread_t t;

	for (size_t i = 0; i < 3; i++)
		pthread_create(&t, NULL, start[i], NULL);
	return run_reader();
}

NOINLINE int spin_kernel(void)
{
	for (;;)
		atomic_fetch_add(&board->beats, 1);
	return 0;
}

NOINLINE pid_t start_target(int (*run)(void), uid_t uid)
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

/* Waits until the thread sleeps in this system call, and n threads have reported themselves. */
void wait_until_in(pid_t tid, long number, unsigned n)
{
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
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

char state_of(pid_t pid)
{
	struct cw_procfs_stat st = { .state = '?' };

	(void)cw_procfs_stat(pid, 0, &st);
	return st.state;
}

void wait_for_state(pid_t pid, char state)
{
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;

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
	look->native = cw_stack_output_read(output, len, end == CW_CHILD_EXITED);
	look->is_done = true;
	event_base_loopbreak(look->base);
}

struct cw_stack_target target_of(pid_t pid, uid_t uid)
{
	struct cw_procfs_stat st = { 0 };

	cr_assert_eq(cw_procfs_stat(pid, 0, &st), 0);
	return (struct cw_stack_target){ pid, st.start_ticks, uid, uid };
}

json_t *look_at(const struct cw_stack_target *t)
{
	return look_at_by(look_main, t);
}

static json_t *look_once(int (*main)(int out_fd, const void *arg), const struct cw_stack_target *t)
{
	struct look look = { .base = event_base_new() };
	struct cw_child_config config = { .main = main,
					  .arg = t,
					  .deadline_ms = 120000,
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

/*
 * True if the machine was too busy: a thread got no processor in time, or we got none while we held
 * the thread.
 */
static bool was_too_busy(const json_t *native)
{
	static const char *const reasons[] = { "cut short", "already been held",
					       "did not stop in time" };

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strstr(text_of(native, "reason"), reasons[i]))
			return true;
	return false;
}

json_t *look_at_by(int (*main)(int out_fd, const void *arg), const struct cw_stack_target *t)
{
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
	json_t *native = look_once(main, t);

	while (was_too_busy(native) && now_ns() < deadline) {
		json_decref(native);
		native = look_once(main, t);
	}
	return native;
}

const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

const json_t *thread_named(const json_t *native, const char *name)
{
	json_t *thread;
	size_t i;

	json_array_foreach (json_object_get(native, "threads"), i, thread) {
		if (strcmp(text_of(thread, "name"), name) == 0)
			return thread;
	}
	return NULL;
}

/* Returns the index of the frame with that symbol; -1 = none. */
int frame_of(const json_t *thread, const char *symbol)
{
	json_t *frame;
	size_t i;

	json_array_foreach (json_object_get(thread, "frames"), i, frame) {
		if (strcmp(text_of(frame, "symbol"), symbol) == 0)
			return (int)i;
	}
	return -1;
}

void expect_reader(const json_t *native)
{
	const json_t *main_thread = json_array_get(json_object_get(native, "threads"), 0);
	int inner = frame_of(main_thread, "data_loader_next");
	const json_t *frame = json_array_get(json_object_get(main_thread, "frames"),
					     inner < 0 ? 0 : (size_t)inner);
	char *text = json_dumps(native, JSON_INDENT(1));

	cr_assert_geq(inner, 1, "%s", text); /* the frame of read() is inside it */
	cr_assert_gt(frame_of(main_thread, "train_step"), inner, "%s", text);
	cr_assert_gt(frame_of(main_thread, "start_target"), frame_of(main_thread, "train_step"));
	cr_assert_not_null(strstr(text_of(frame, "file"), "stack_fixture.c"), "%s", text);
	cr_assert_gt(json_integer_value(json_object_get(frame, "line")), 0);
	cr_assert_eq(strncmp(text_of(frame, "module"), "test_stack", 10), 0, "%s", text);
	free(text);
}

void finish_reader(void)
{
	int status = 0;

	cr_assert_eq(write(pipe_fds[1], "x", 1), 1);
	cr_assert_eq(waitpid(target, &status, 0), target);
	target = 0;
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
	cr_assert_eq(atomic_load(&board->interrupted), 0);
}

void expect_alive(void)
{
	uint64_t beats = atomic_load(&board->beats);
	int64_t deadline = now_ns() + 120 * CW_NS_PER_S;
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
