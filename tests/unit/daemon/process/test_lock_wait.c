/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes whose threads wait for each other, and a made-up clock. */
#include "daemon/process/lock_wait.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/kernel/procstat.h"
#include "daemon/process/host_activity.h"
#include "model/facts.h"

#define WINDOW_NS (2 * CW_NS_PER_S)
#define TRIES 60000 /* of a millisecond */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static int awake[2], ready[2];

static void *hold(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&lock);
	(void)pthread_barrier_wait(&held);
	for (;;)
		(void)pause();
	return NULL;
}

/* It runs on each of the test's requests. */
static const char *helper_name = "pt_nccl_watchdg";

static void *run_now_and_then(void *arg)
{
	char c;

	if (arg)
		(void)prctl(PR_SET_NAME, helper_name);
	while (read(awake[0], &c, 1) == 1)
		(void)!write(ready[1], "r", 1);
	return NULL;
}

static void wait_for_lock(bool is_helper)
{
	pthread_t holder, runner;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_barrier_init(&held, NULL, 2) || pthread_create(&holder, NULL, hold, NULL) ||
	    pthread_create(&runner, NULL, run_now_and_then, is_helper ? &lock : NULL))
		_exit(1);
	(void)pthread_barrier_wait(&held);
	(void)!write(ready[1], "w", 1);
	(void)pthread_mutex_lock(&lock);
	_exit(0);
}

/* Waits for a lock that it holds itself. */
static void wait_for_own_lock(bool is_helper)
{
	(void)is_helper;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)pthread_mutex_lock(&lock);
	(void)!write(ready[1], "w", 1);
	(void)pthread_mutex_lock(&lock); /* NOLINT(clang-analyzer-alpha.unix.PthreadLock): meant */
	_exit(0);
}

/* ---- a wait of all threads of a process ---- */

static sem_t *words;

static void make_words(int is_shared)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	words = mmap(NULL, sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (words == MAP_FAILED || sem_init(words, is_shared, 0))
		_exit(1);
}

static void *wait_for_word(void *arg)
{
	(void)arg;
	(void)sem_wait(words);
	return NULL;
}

static void wait_all(void *(*other)(void *arg), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, other, arg))
		_exit(1);
	(void)!write(ready[1], "w", 1);
	(void)sem_wait(words);
	_exit(0);
}

static void wait_for_each_other(bool is_helper)
{
	(void)is_helper;
	make_words(0);
	wait_all(wait_for_word, NULL);
}

/* Another of its threads, or a helper, waits for input from outside. */
static void wait_beside_reader(bool is_helper)
{
	make_words(0);
	wait_all(run_now_and_then, is_helper ? &lock : NULL);
}

static void wait_for_other_process(bool is_helper)
{
	(void)is_helper;
	make_words(1);
	wait_all(wait_for_word, NULL);
}

static void *wait_for_time(void *arg)
{
	const struct timespec until = { .tv_sec = INT32_MAX };

	(void)arg;
	(void)sem_timedwait(words, &until);
	return NULL;
}

static void wait_beside_timer(bool is_helper)
{
	(void)is_helper;
	make_words(0);
	wait_all(wait_for_time, NULL);
}

/* CPython's own locks; beside them, maybe, a thread that waits for a message, as loaders have. */
static void wait_in_python(const char *beside)
{
	char program[512];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(program, sizeof(program),
		       "import os, threading\n"
		       "a, b, both = threading.Lock(), threading.Lock(), threading.Barrier(2)\n"
		       "def other():\n"
		       "    b.acquire(); both.wait(); a.acquire()\n"
		       "threading.Thread(target=other, daemon=True).start()\n"
		       "%s\n"
		       "a.acquire(); both.wait(); os.write(%d, b'w'); b.acquire()\n",
		       beside, ready[1]);
	(void)execlp("python3", "python3", "-S", "-c", program, NULL);
	(void)!write(ready[1], "x", 1);
	_exit(1);
}

static void wait_for_python_locks(bool is_helper)
{
	(void)is_helper;
	wait_in_python("");
}

static void wait_beside_python_reader(bool is_helper)
{
	(void)is_helper;
	wait_in_python("r, w = os.pipe(); threading.Thread(target=os.read, args=(r, 1), "
		       "daemon=True).start()");
}

/*
 * A thread of Python's keeps the interpreter, as an extension does that forgets to let it go, while
 * "keep" runs; the first one and others want it, each of them 200 times a second. Before, it writes
 * where the interpreter keeps its lock.
 */
static void want_interpreter(const char *keep)
{
	char program[1024];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(
		program, sizeof(program),
		"import ctypes, os, threading, time\n"
		"lib, go = ctypes.PyDLL(None), threading.Event()\n"
		"at = ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime')\n"
		"def keep():\n"
		"    go.wait()\n"
		"    os.write(%d, b'p' + ctypes.addressof(at).to_bytes(8, 'little'))\n"
		"    %s\n"
		"threads = [threading.Thread(target=keep, daemon=True)]\n"
		"threads += [threading.Thread(target=go.wait, daemon=True) for _ in range(9)]\n"
		"[thread.start() for thread in threads]\n"
		"go.set()\n"
		"while True: pass\n",
		ready[1], keep);
	(void)execlp("python3", "python3", "-S", "-c", program, NULL);
	_exit(1);
}

static void want_kept_interpreter(bool is_helper)
{
	(void)is_helper;
	want_interpreter("lib.pause()");
}

/* It gets somewhere, however rarely: a waiting thread may get it. */
static void want_used_interpreter(bool is_helper)
{
	char keep[128];

	(void)is_helper;
	(void)snprintf(keep, sizeof(keep),
		       "b = ctypes.create_string_buffer(1)\n"
		       "    [lib.write(%d, b'r', lib.read(%d, b, 1)) for _ in iter(int, 1)]",
		       ready[1], awake[0]);
	want_interpreter(keep);
}

/*
 * The first thread has the interpreter and waits for a mutex; the mutex's holder wants the
 * interpreter.
 */
static void wait_crosswise(bool is_helper)
{
	char program[1024];

	(void)is_helper;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(program, sizeof(program),
		       "import ctypes, os, threading\n"
		       "at = ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime')\n"
		       "mutex, r, w = ctypes.create_string_buffer(64), *os.pipe()\n"
		       "free, kept = ctypes.CDLL(None), ctypes.PyDLL(None)\n"
		       "def other():\n"
		       "    free.pthread_mutex_lock(mutex); os.write(w, b'x')\n"
		       "    while True: pass\n"
		       "threading.Thread(target=other, daemon=True).start()\n"
		       "os.read(r, 1)\n"
		       "os.write(%d, b'p' + ctypes.addressof(at).to_bytes(8, 'little'))\n"
		       "kept.pthread_mutex_lock(mutex)\n",
		       ready[1]);
	(void)execlp("python3", "python3", "-S", "-c", program, NULL);
	_exit(1);
}

struct rank {
	pid_t pid;
	int proc_fd;
	int64_t now_ns;
	struct cw_host_interpreter interpreter;
	struct cw_host_activity host_activity;
};

static void window(struct rank *r)
{
	struct cw_host_activity_process process = { .proc_fd = r->proc_fd,
						    .pid = r->pid,
						    .interpreter = r->interpreter };
	struct cw_procstat st;

	r->now_ns += WINDOW_NS;
	cr_assert_eq(cw_procstat_read(r->proc_fd, &st), 0);
	cw_host_activity_step(&r->host_activity, &process, &st, r->now_ns);
}

static bool all_sleep(const struct rank *r)
{
	struct cw_procstat st;
	pid_t tids[8];
	size_t n;

	cr_assert_eq(cw_procstat_threads(r->proc_fd, tids, 8, &n), 0);
	for (size_t i = 0; i < n; i++)
		if (cw_procstat_read_thread(r->proc_fd, tids[i], &st) < 0 || st.state != 'S')
			return false;
	return true;
}

/* Waits until each woken thread has reached its next wait: no thread runs from now on. */
static void let_settle(const struct rank *r)
{
	for (int i = 0; i < TRIES && !all_sleep(r); i++)
		(void)usleep(1000);
}

static void start(struct rank *r, void (*main)(bool is_helper), bool is_helper)
{
	char c;

	cr_assert_eq(pipe(awake), 0);
	cr_assert_eq(pipe(ready), 0);
	*r = (struct rank){ .pid = fork(), .now_ns = CW_NS_PER_S };
	cr_assert(r->pid >= 0);
	if (r->pid == 0)
		main(is_helper);
	cr_assert_eq(read(ready[0], &c, 1), 1);
	if (c == 'p') {
		cr_assert_eq(read(ready[0], &r->interpreter.address, 8), 8);
		r->interpreter.bytes = 1u << 20; /* more than any has: 672 to 460,000 bytes */
	}
	r->proc_fd = cw_procstat_open(r->pid);
	cr_assert(r->proc_fd >= 0);
	cw_host_activity_init(&r->host_activity);
	let_settle(r);
}

static void begin(struct rank *r, void (*main)(bool is_helper), bool is_helper)
{
	start(r, main, is_helper);
	for (int i = 0; i < TRIES && !r->host_activity.lock.on.address; i++) {
		window(r);
		(void)usleep(1000);
	}
	let_settle(r);
	window(r);
}

static void end(struct rank *r)
{
	cr_assert_eq(kill(r->pid, SIGKILL), 0);
	cr_assert_eq(waitpid(r->pid, NULL, 0), r->pid);
	cw_host_activity_fini(&r->host_activity);
	(void)close(r->proc_fd);
}

/* As the node does, once that is due. */
static void find_owner(struct rank *r)
{
	struct cw_lock_wait *w = &r->host_activity.lock;

	cr_assert_not(cw_lock_wait_must_ask(w, w->since_ns + CW_LOCK_WAIT_ASK_NS - 1));
	cr_assert(cw_lock_wait_must_ask(w, w->since_ns + CW_LOCK_WAIT_ASK_NS));
	cw_lock_wait_answer(w, w->on.address,
			    cw_lock_wait_read(r->pid, w->on.address, w->on.is_inherited));
	cr_assert_not(cw_lock_wait_must_ask(w, w->since_ns + CW_LOCK_WAIT_ASK_NS));
}

static void windows(struct rank *r, int64_t ns)
{
	for (int64_t end_ns = r->now_ns + ns; r->now_ns < end_ns;)
		window(r);
}

static bool may_look(void)
{
	FILE *f = fopen("/proc/self/syscall", "re");
	bool may = f && fgetc(f) != EOF;

	if (f)
		(void)fclose(f);
	return may;
}

static void let_run(const struct rank *r)
{
	char c;

	cr_assert_eq(write(awake[1], "x", 1), 1);
	cr_assert_eq(read(ready[0], &c, 1), 1);
	let_settle(r);
}

Test(lock_wait, a_lock_whose_owner_sleeps_is_closed_once_nobody_has_run, .timeout = 300)
{
	struct rank r;

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	begin(&r, wait_for_lock, false);
	cr_assert_neq(r.host_activity.lock.on.address, 0);
	windows(&r, 2 * CW_LOCK_WAIT_STILL_NS);
	cr_expect_neq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK, "the owner is not known yet");
	find_owner(&r);
	cr_assert_neq(r.host_activity.lock.owner, 0);
	cr_expect_neq(r.host_activity.lock.owner, r.pid);
	windows(&r, WINDOW_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	let_run(&r);
	windows(&r, CW_LOCK_WAIT_STILL_NS);
	cr_expect_neq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK, "the owner may release it");
	windows(&r, 2 * WINDOW_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	end(&r);
}

Test(lock_wait, what_helpers_run_does_not_count, .timeout = 300)
{
	struct rank r;

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	begin(&r, wait_for_lock, true);
	let_run(&r); /* it has its name by now */
	find_owner(&r);
	windows(&r, CW_LOCK_WAIT_STILL_NS + 2 * WINDOW_NS);
	let_run(&r);
	windows(&r, WINDOW_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	end(&r);
}

Test(lock_wait, one_may_wait_for_itself, .timeout = 300)
{
	struct rank r;

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	begin(&r, wait_for_own_lock, false);
	find_owner(&r);
	cr_expect_eq(r.host_activity.lock.owner, r.pid);
	windows(&r, CW_LOCK_WAIT_STILL_NS + 2 * WINDOW_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	end(&r);
}

/* The first look is the base; then it is quiet, and then no thread has run for long. */
static bool is_closed(void (*main)(bool is_helper), bool is_helper)
{
	struct rank r;
	bool is_early, is_closed;

	start(&r, main, is_helper);
	if (is_helper)
		let_run(&r); /* it has its name by now */
	windows(&r, CW_LOCK_WAIT_ASK_NS + CW_LOCK_WAIT_STILL_NS);
	is_early = r.host_activity.host_wait == CW_HOST_WAIT_LOCK;
	windows(&r, 3 * WINDOW_NS);
	is_closed = r.host_activity.host_wait == CW_HOST_WAIT_LOCK;
	cr_expect_not(is_early);
	end(&r);
	return is_closed;
}

Test(lock_wait, threads_that_only_each_other_can_wake_are_closed, .timeout = 300)
{
	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	cr_expect(is_closed(wait_for_each_other, false));
	cr_expect(is_closed(wait_beside_reader, true), "a helper gives the program nothing");
}

Test(lock_wait, whom_something_else_may_wake_is_not_closed, .timeout = 300)
{
	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	cr_expect_not(is_closed(wait_beside_reader, false), "a message may come");
	helper_name = "cuda-EvtHandlr";
	cr_expect_not(is_closed(wait_beside_reader, true),
		      "the device may come to what it waits for");
	cr_expect_not(is_closed(wait_for_other_process, false), "its word is shared");
	cr_expect_not(is_closed(wait_beside_timer, false), "it wakes up by itself");
}

Test(lock_wait, python_threads_in_each_others_locks_are_closed, .timeout = 300)
{
	if (!may_look() || system("python3 -c pass") != 0)
		cr_skip_test("no Python, or /proc/PID/syscall is not readable");
	cr_expect(is_closed(wait_for_python_locks, false));
	cr_expect_not(is_closed(wait_beside_python_reader, false), "a message may come");
}

/* All threads but the keeper of the interpreter wait for it by now. */
static void let_all_want_it(const struct rank *r)
{
	unsigned n_others = 2;

	for (int i = 0; i < TRIES && n_others != 1; i++) {
		pid_t tids[16];
		size_t n;

		cr_assert_eq(cw_procstat_threads(r->proc_fd, tids, 16, &n), 0);
		n_others = 0;
		for (size_t k = 0; k < n; k++) {
			struct cw_host_futex futex = { 0 };

			(void)cw_host_wait_thread(r->proc_fd, tids[k], &futex);
			n_others += !futex.is_unsettled &&
				    !cw_host_wait_is_interpreter(&r->interpreter, &futex);
		}
		(void)usleep(1000);
	}
	cr_assert_eq(n_others, 1);
}

/* … and it was seen at the end of a window: a busy machine shows it awake for some. */
static void until_it_wants(struct rank *r)
{
	let_all_want_it(r);
	for (int i = 0; i < TRIES && !r->host_activity.lock.on.is_interpreter; i++) {
		window(r);
		(void)usleep(1000);
	}
}

Test(lock_wait, who_wants_a_kept_interpreter_is_closed, .timeout = 300)
{
	struct rank r;

	if (!may_look() || system("python3 -c 'import ctypes'") != 0)
		cr_skip_test("no Python, or /proc/PID/syscall is not readable");
	start(&r, want_kept_interpreter, false);
	until_it_wants(&r);
	windows(&r, CW_LOCK_WAIT_STILL_NS - WINDOW_NS);
	cr_expect(r.host_activity.lock.on.is_interpreter);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_UNKNOWN,
		     "not a queue, and not for long");
	cr_expect_not(cw_lock_wait_must_ask(&r.host_activity.lock, r.now_ns),
		      "no word says who has it");
	windows(&r, 3 * WINDOW_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_GIL);
	/* The interpreter's address is unknown: then it is a wait with a time-out. */
	r.interpreter.bytes = 0;
	for (int i = 0; i < TRIES && r.host_activity.host_wait != CW_HOST_WAIT_QUEUE; i++)
		window(&r);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_QUEUE);
	end(&r);
}

Test(lock_wait, who_wants_an_interpreter_that_is_used_is_not_closed, .timeout = 300)
{
	struct rank r;

	if (!may_look() || system("python3 -c 'import ctypes'") != 0)
		cr_skip_test("no Python, or /proc/PID/syscall is not readable");
	start(&r, want_used_interpreter, false);
	until_it_wants(&r);
	for (unsigned i = 0; i < 3; i++) {
		char c;

		windows(&r, CW_LOCK_WAIT_STILL_NS - 2 * WINDOW_NS);
		cr_expect_neq(r.host_activity.host_wait, CW_HOST_WAIT_GIL);
		cr_assert_eq(write(awake[1], "x", 1), 1);
		cr_assert_eq(read(ready[0], &c, 1), 1);
		let_all_want_it(&r);
	}
	windows(&r, CW_LOCK_WAIT_STILL_NS + 2 * WINDOW_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_GIL);
	end(&r);
}

Test(lock_wait, a_lock_whose_owner_wants_the_interpreter_is_closed, .timeout = 300)
{
	struct rank r;

	if (!may_look() || system("python3 -c 'import ctypes'") != 0)
		cr_skip_test("no Python, or /proc/PID/syscall is not readable");
	start(&r, wait_crosswise, false);
	let_all_want_it(&r);
	windows(&r, 2 * WINDOW_NS);
	find_owner(&r);
	cr_expect_neq(r.host_activity.lock.owner, 0);
	cr_expect_neq(r.host_activity.lock.owner, r.pid);
	windows(&r, CW_LOCK_WAIT_STILL_NS + 2 * WINDOW_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	end(&r);
}

Test(lock_wait, who_runs_now_and_then_is_not_closed, .timeout = 300)
{
	struct rank r;

	if (!may_look())
		cr_skip_test("/proc/PID/syscall is not readable");
	start(&r, wait_for_each_other, false);
	windows(&r, CW_LOCK_WAIT_ASK_NS + CW_LOCK_WAIT_STILL_NS + 3 * WINDOW_NS);
	cr_assert_eq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	/* A signal without effect lets its first thread run. */
	cr_assert_eq(kill(r.pid, SIGSTOP), 0);
	cr_assert_eq(kill(r.pid, SIGCONT), 0);
	let_settle(&r);
	window(&r);
	cr_expect_neq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	windows(&r, CW_LOCK_WAIT_STILL_NS);
	cr_expect_eq(r.host_activity.host_wait, CW_HOST_WAIT_LOCK);
	end(&r);
}

Test(lock_wait, only_what_looks_like_a_mutex_has_an_owner)
{
	cr_expect_eq(cw_lock_wait_owner((uint32_t[]){ 2, 0, 4711, 1 }, false), 4711);
	cr_expect_eq(cw_lock_wait_owner((uint32_t[]){ 1, 0, 4711, 1 }, false), 0, "no waiters");
	cr_expect_eq(cw_lock_wait_owner((uint32_t[]){ 2, 0, 0, 1 }, false), 0);
	cr_expect_eq(cw_lock_wait_owner((uint32_t[]){ 2, 0, 4711, 0 }, false), 0, "no owner");
	cr_expect_eq(cw_lock_wait_owner((uint32_t[]){ 2, 0, 0x55555000, 0x7f12 }, false), 0,
		     "a pointer");
	cr_expect_eq(cw_lock_wait_owner((uint32_t[]){ 0x80000000 | 4711, 0, 0, 0 }, true), 4711,
		     "the kernel's mark of a waiting thread");
	cr_expect_eq(cw_lock_wait_read(getpid(), 8, false), 0, "nothing is there");
}
