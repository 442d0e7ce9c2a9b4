/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that a capture keeps a rank from its work. A process with many threads, most asleep and
 * some busy, each with the stack that a capture copies whole; every busy one looks at the clock all
 * the time and notes the longest gap. Rounds with and without a capture (all of it: taking,
 * unwinding) take turns, so that other load on the machine meets both. The longest gap includes the
 * machine's own. We also print the holding time of a capture by itself, all threads of the process
 * together.
 *
 *	capture-bench [--smoke]
 *
 * Ends with 1 when a capture brought no stack of a thread, or held the process absurdly long.
 * --smoke: a few rounds with a few threads, to see that.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/evidence/stack.h"
#include "daemon/evidence/stack_take.h"
#include "daemon/kernel/procfs.h"

#define ROUNDS 41
#define STACK_BYTES (4u << 20)
#define DEEP_BYTES (512u << 10) /* more than is copied */
/* A round without a capture lasts as long as the one with it did, this at least. */
#define ROUND_MIN_NS (20 * CW_NS_PER_MS)
/* Two hundred times CW_STACK_HOLD_MS, the limit: no load of the machine explains this. */
#define HELD_ABSURD_NS (20 * CW_NS_PER_S)

struct shape {
	unsigned threads, busy;
	size_t depth_bytes;
};

static const struct shape shapes[] = {
	{ 1, 1, 0 },
	{ 64, 1, 0 },
	{ 200, 1, 0 },
	{ 64, 1, DEEP_BYTES },
};

/* Shared with the target. */
static struct board {
	atomic_uint ready;
	_Atomic int64_t gap_ns; /* the longest of any busy thread since it was set to 0 */
} * board;

static size_t depth_bytes; /* of the target's threads */
static unsigned rounds = ROUNDS;

static void fail(const char *what)
{
	fprintf(stderr, "capture-bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	return cw_clock_now_ns(&cw_clock_system);
}

/* ---- the target ---- */

static void note_gaps(void)
{
	int64_t last = now_ns();

	for (;;) {
		int64_t now = now_ns(), seen = atomic_load(&board->gap_ns);

		while (now - last > seen &&
		       !atomic_compare_exchange_weak(&board->gap_ns, &seen, now - last))
			;
		last = now;
	}
}

static void work(bool is_busy)
{
	char *deep = __builtin_alloca(depth_bytes + 1);

	memset(deep, 1, depth_bytes + 1); /* its pages are there */
	__asm__ volatile("" : : "r"(deep) : "memory");
	atomic_fetch_add(&board->ready, 1);
	if (is_busy)
		note_gaps();
	for (;;)
		pause();
}

static void *on_thread(void *arg)
{
	work(arg != NULL);
	return NULL;
}

static void run_target(const struct shape *shape)
{
	pthread_attr_t attr;
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	depth_bytes = shape->depth_bytes;
	if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, STACK_BYTES))
		_exit(1);
	/* The main thread is busy, and so are the last ones: the last thread is held last. */
	for (unsigned i = 1; i < shape->threads; i++)
		if (pthread_create(&t, &attr, on_thread,
				   i > shape->threads - shape->busy ? &attr : NULL))
			_exit(1);
	work(true);
}

static pid_t start_target(const struct shape *shape)
{
	pid_t pid;

	atomic_store(&board->ready, 0);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0)
		run_target(shape);
	while (atomic_load(&board->ready) < shape->threads)
		if (waitpid(pid, NULL, WNOHANG) != 0)
			fail("the target");
	return pid;
}

/* ---- a round ---- */

static _Noreturn void complain(const char *what)
{
	fprintf(stderr, "capture-bench: %s\n", what);
	exit(1);
}

/* Number of threads with frames in a capture's lines; reads fd to its end, as a daemon does. */
static unsigned stacks_in(int fd)
{
	static const char key[] = "\"frames\":[";
	static char text[CW_STACK_MAX_OUTPUT + 1];
	unsigned found = 0;
	size_t used = 0;
	ssize_t n;

	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	for (const char *p = text; (p = strstr(p, key)); found += *p != ']')
		p += sizeof(key) - 1;
	return found;
}

static void be_child(pid_t target, int out)
{
	struct cw_stack_target t = { .pid = target, .uid = getuid(), .gid = getgid() };
	struct cw_procfs_stat st = { 0 };

	if (cw_procfs_stat(target, 0, &st) < 0)
		_exit(1);
	t.start_ticks = st.start_ticks;
	_exit(cw_stack_child(out, &t));
}

static int64_t capture(pid_t target)
{
	int64_t start = now_ns();
	int fds[2], status;
	unsigned found;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0)
		be_child(target, fds[1]);
	(void)close(fds[1]);
	found = stacks_in(fds[0]);
	(void)close(fds[0]);
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	if (status != 0 || found == 0)
		complain("a capture brought no stack");
	return now_ns() - start;
}

static void let_run(int64_t ns)
{
	struct timespec ts = { ns / CW_NS_PER_S, ns % CW_NS_PER_S };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

/* All threads of it together; *ret_taken: how many were copied. */
static int64_t held_ns(pid_t target, unsigned *ret_taken)
{
	struct cw_stack_copy *copy;
	int64_t held;

	*ret_taken = 0;
	if (cw_stack_take_copy(target, getuid(), &copy) < 0 || cw_stack_take_all(copy) < 0)
		fail("taking stacks");
	for (uint32_t i = 0; i < copy->n_threads; i++)
		*ret_taken += copy->threads[i].result == CW_STACK_TAKEN;
	held = copy->held_ns;
	(void)cw_stack_take_free(copy);
	if (*ret_taken == 0)
		complain("no thread was copied");
	if (held <= 0 || held > HELD_ABSURD_NS)
		complain("the process was held for no time, or absurdly long");
	return held;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_ms(int64_t *ns)
{
	qsort(ns, rounds, sizeof(*ns), by_value);
	return (double)ns[rounds / 2] / (double)CW_NS_PER_MS;
}

static double most_ms(const int64_t *sorted)
{
	return (double)sorted[rounds - 1] / (double)CW_NS_PER_MS;
}

static void measure(const struct shape *shape)
{
	int64_t with[ROUNDS], without[ROUNDS], held[ROUNDS], lasted = ROUND_MIN_NS;
	pid_t target = start_target(shape);
	double a, b, c;
	unsigned taken = 0;

	for (unsigned i = 0; i < rounds; i++) {
		atomic_store(&board->gap_ns, 0);
		lasted = capture(target);
		if (lasted < ROUND_MIN_NS) {
			let_run(ROUND_MIN_NS - lasted);
			lasted = ROUND_MIN_NS;
		}
		with[i] = atomic_exchange(&board->gap_ns, 0);
		let_run(lasted);
		without[i] = atomic_load(&board->gap_ns);
		held[i] = held_ns(target, &taken);
	}
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	a = median_ms(without);
	b = median_ms(with);
	c = median_ms(held);
	printf("| %u, %u of them busy, %zu KiB of stack | %.2f, %.2f | %.2f, %.2f | %.2f, %.2f | "
	       "%u |\n",
	       shape->threads, shape->busy, shape->depth_bytes >> 10, a, most_ms(without), b,
	       most_ms(with), c, most_ms(held), taken);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	size_t n_shapes = sizeof(shapes) / sizeof(shapes[0]);

	if (argc == 2 && strcmp(argv[1], "--smoke") == 0) {
		rounds = 3;
		n_shapes = 2;
	} else if (argc > 1) {
		fprintf(stderr, "usage: capture-bench [--smoke]\n");
		return 2;
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		fail("mmap");
	printf("%u rounds; ms, median and most\n\n", rounds);
	printf("| threads | gap without | gap with | held, all threads | copied "
	       "|\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < n_shapes; i++)
		measure(&shapes[i]);
	return 0;
}
