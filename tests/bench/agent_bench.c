/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording adds to one NCCL call on the host. Calls through a wrapper and calls of the bare
 * function take turns in one process, so that both see the same machine.
 *
 *	agent-bench [--json] [--max NS]
 *
 * median: of the difference, over batches. p999: the 99.9th percentile of single calls through the
 * wrapper, less what reading the clock costs. ratio: with the agent to without; the bare function
 * here does nothing, a real NCCL call takes microseconds. cold: 32 MiB are touched before each
 * call. training_loop: steps of work on a MiB and 16 ops; its ratio is the whole loop's, and its
 * p999 of steps, not calls. --max: exit status 1 when a recorded call's
 *median is above. Exit status 77 when there is no record.
 *
 * Device progress is measured in a process of its own, against a driver that does nothing: what the
 * driver itself takes for two writes is not in it.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/record.h"
#include "agent/wrap.h"
#include "common/op.h"
#include "tests/unit/agent_cuda/fake_cuda.h"

#define BATCHES 401
#define BATCH_CALLS 1000
#define SINGLES 200000
#define COLD_CALLS 301
#define COLD_BYTES (32u << 20)
#define COMMS 4
#define GROUP_OPS 8
#define STEPS 2001
#define STEP_OPS 16
#define STEP_BYTES (1u << 20)

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	static char handles[COMMS][4096];
	static unsigned n;

	*comm = (ncclComm_t)handles[n++ % COMMS];
	return ncclSuccess;
}

static __attribute__((noinline)) ncclResult_t
fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c, cudaStream_t st)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

static __attribute__((noinline)) ncclResult_t fake_send(const void *s, size_t n, int dt, int peer,
							ncclComm_t c, cudaStream_t st)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

static __attribute__((noinline)) ncclResult_t fake_group(void)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclSend = fake_send,
	.ncclGroupStart = fake_group,
	.ncclGroupEnd = fake_group,
	.ncclCommInitRank = fake_init,
};

static ncclComm_t comms[COMMS];

/* ---- what is called ---- */

static void all_reduce(ncclComm_t comm, bool with_agent)
{
	if (with_agent)
		(void)cw_impl_ncclAllReduce(&fake, (void *)all_reduce, &comms, &comms, 1000,
					    CW_DTYPE_BF16, CW_REDOP_SUM, comm, NULL);
	else
		(void)fake_all_reduce(&comms, &comms, 1000, CW_DTYPE_BF16, CW_REDOP_SUM, comm,
				      NULL);
}

static void plain(unsigned i, bool with_agent)
{
	all_reduce(comms[i / 8 % COMMS], with_agent);
}

static void second_thread(unsigned i, bool with_agent)
{
	all_reduce(comms[COMMS / 2 + i / 8 % (COMMS / 2)], with_agent);
}

static void first_thread(unsigned i, bool with_agent)
{
	all_reduce(comms[i / 8 % (COMMS / 2)], with_agent);
}

static void p2p(unsigned i, bool with_agent)
{
	if (with_agent)
		(void)cw_impl_ncclSend(&fake, (void *)p2p, &comms, 1000, CW_DTYPE_BF16,
				       (int)(i % 7) + 1, comms[0], NULL);
	else
		(void)fake_send(&comms, 1000, CW_DTYPE_BF16, (int)(i % 7) + 1, comms[0], NULL);
}

static void grouped(unsigned i, bool with_agent)
{
	if (with_agent)
		(void)cw_impl_ncclGroupStart(&fake, (void *)grouped);
	else
		(void)fake_group();
	for (unsigned n = 0; n < GROUP_OPS; n++)
		all_reduce(comms[i % COMMS], with_agent);
	if (with_agent)
		(void)cw_impl_ncclGroupEnd(&fake, (void *)grouped);
	else
		(void)fake_group();
}

typedef void (*call_fn)(unsigned i, bool with_agent);

/* ---- measuring ---- */

struct result {
	double median, p999, ratio;
};

static double now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double percentile(double *v, size_t n, double p)
{
	qsort(v, n, sizeof(*v), compare);
	return v[(size_t)((double)(n - 1) * p)];
}

static double batch(call_fn call, bool with_agent)
{
	double start = now_ns();

	for (unsigned i = 0; i < BATCH_CALLS; i++)
		call(i, with_agent);
	return (now_ns() - start) / BATCH_CALLS;
}

static double p999_of(call_fn call)
{
	static double single[SINGLES], clock_cost[SINGLES];

	for (unsigned i = 0; i < SINGLES; i++) {
		double a = now_ns(), b = now_ns();

		call(i, true);
		single[i] = now_ns() - b;
		clock_cost[i] = b - a;
	}
	return percentile(single, SINGLES, 0.999) - percentile(clock_cost, SINGLES, 0.5);
}

/* The costs of one op, when a call makes ops of them. */
static struct result summary(double *with, double *without, size_t n, double p999, unsigned ops)
{
	double a = percentile(with, n, 0.5), b = percentile(without, n, 0.5);

	return (struct result){ (a - b) / ops, p999 / ops, b > 0 ? a / b : 0 };
}

static struct result measure(call_fn call, unsigned ops)
{
	static double with[BATCHES], without[BATCHES];

	for (unsigned i = 0; i < BATCHES; i++) {
		without[i] = batch(call, false);
		with[i] = batch(call, true);
	}
	return summary(with, without, BATCHES, p999_of(call), ops);
}

static void touch(void)
{
	static volatile char memory[COLD_BYTES];

	for (size_t i = 0; i < COLD_BYTES; i += 64)
		memory[i] = (char)(memory[i] + 1);
}

static double once_cold(bool with_agent, unsigned i)
{
	double start;

	touch();
	start = now_ns();
	plain(i, with_agent);
	return now_ns() - start;
}

static struct result measure_cold(void)
{
	static double with[COLD_CALLS], without[COLD_CALLS];
	double clock_and_call;

	for (unsigned i = 0; i < COLD_CALLS; i++) {
		without[i] = once_cold(false, i);
		with[i] = once_cold(true, i);
	}
	clock_and_call = percentile(without, COLD_CALLS, 0.5);
	return summary(with, without, COLD_CALLS,
		       percentile(with, COLD_CALLS, 0.999) - clock_and_call, 1);
}

/* ---- a training loop: work on a MiB, then its gradients ---- */

static double training_step(unsigned i, bool with_agent)
{
	static volatile float weights[STEP_BYTES / sizeof(float)];
	double start = now_ns();

	for (size_t w = 0; w < STEP_BYTES / sizeof(float); w++)
		weights[w] = weights[w] * 0.999f + 0.001f;
	for (unsigned n = 0; n < STEP_OPS - GROUP_OPS; n++)
		plain(i + n, with_agent);
	grouped(i, with_agent);
	return now_ns() - start;
}

static struct result measure_loop(void)
{
	static double with[STEPS], without[STEPS];
	double empty;

	for (unsigned i = 0; i < STEPS; i++) {
		without[i] = training_step(i, false);
		with[i] = training_step(i, true);
	}
	empty = percentile(without, STEPS, 0.5);
	return summary(with, without, STEPS, percentile(with, STEPS, 0.999) - empty, STEP_OPS);
}

/* ---- two threads on two processors ---- */

static struct {
	pthread_barrier_t barrier;
	double with[BATCHES], without[BATCHES];
	bool is_over; /* atomic */
} second;

static bool pin(unsigned nth)
{
	cpu_set_t may, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &may) && nth-- == 0) {
			CPU_SET(cpu, &one);
			return sched_setaffinity(0, sizeof(one), &one) == 0;
		}
	}
	return false;
}

static void *run_second(void *arg)
{
	bool *is_pinned = arg;

	*is_pinned = pin(1);
	for (unsigned i = 0; i < BATCHES; i++) {
		(void)pthread_barrier_wait(&second.barrier);
		second.without[i] = batch(second_thread, false);
		(void)pthread_barrier_wait(&second.barrier);
		second.with[i] = batch(second_thread, true);
	}
	while (!__atomic_load_n(&second.is_over, __ATOMIC_RELAXED))
		(void)batch(second_thread, true);
	return NULL;
}

/* False where there are no two processors. The calling thread is on its own from here on. */
static bool measure_two(struct result *ret)
{
	static double with[BATCHES], without[BATCHES];
	bool is_pinned = false;
	pthread_t thread;
	double p999;

	(void)pthread_barrier_init(&second.barrier, NULL, 2);
	if (pthread_create(&thread, NULL, run_second, &is_pinned) != 0)
		return false;
	(void)sched_yield();
	for (unsigned i = 0; i < BATCHES; i++) {
		(void)pthread_barrier_wait(&second.barrier);
		if (i == 0 && (!is_pinned || !pin(0)))
			is_pinned = false;
		without[i] = batch(first_thread, false);
		(void)pthread_barrier_wait(&second.barrier);
		with[i] = batch(first_thread, true);
	}
	p999 = p999_of(first_thread);
	__atomic_store_n(&second.is_over, true, __ATOMIC_RELAXED);
	(void)pthread_join(thread, NULL);
	*ret = summary(with, without, BATCHES, p999, 1);
	return is_pinned;
}

/* ---- rows ---- */

static bool start_agent(const char *progress)
{
	static char context;

	(void)setenv("COLLWATCH_PROGRESS", progress, 1);
	fake_cuda.current = fake_cuda.stream_owner = &context;
	for (unsigned i = 0; i < COMMS; i++) {
		ncclUniqueId id = { { (char)i } };

		(void)cw_impl_ncclCommInitRank(&fake, NULL, &comms[i], 8, id, 0);
	}
	return cw_agent_is_armed();
}

/* In a child: the agent of a process either has device progress or has not. */
static bool measure_progress(struct result *ret)
{
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(fds) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		struct result r;

		if (!start_agent("on") || !(cw_record.header->has & CW_REC_HAS_PROGRESS))
			_exit(1);
		r = measure(plain, 1);
		_exit(write(fds[1], &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 1);
	}
	(void)close(fds[1]);
	n = pid < 0 ? -1 : read(fds[0], ret, sizeof(*ret));
	(void)close(fds[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
	       n == (ssize_t)sizeof(*ret);
}

struct row {
	const char *name, *what;
	struct result result;
	bool is_there;
};

enum { RECORD_ONLY, GROUPED, P2P, COLD, LOOP, TWO, PROGRESS, ROWS };

static struct row rows[ROWS] = {
	[RECORD_ONLY] = { .name = "record_only_ns", .what = "one call" },
	[GROUPED] = { .name = "grouped_ns", .what = "a call in a group of 8" },
	[P2P] = { .name = "p2p_ns", .what = "a send" },
	[COLD] = { .name = "cold_ns", .what = "one call, cold caches" },
	[LOOP] = { .name = "training_loop_ns", .what = "an op of a training loop" },
	[TWO] = { .name = "two_threads_ns", .what = "one call, two threads" },
	[PROGRESS] = { .name = "with_progress_ns", .what = "one call, device progress" },
};

static void print_json(void)
{
	printf("{");
	for (unsigned i = 0; i < ROWS; i++) {
		const struct result *r = &rows[i].result;

		if (rows[i].is_there)
			printf("\"%s\": {\"median\": %.1f, \"p999\": %.1f, \"ratio\": %.2f}, ",
			       rows[i].name, r->median, r->p999, r->ratio);
		else
			printf("\"%s\": null, ", rows[i].name);
	}
	printf("\"bytes_per_rank\": %zu}\n", (size_t)cw_record.total_bytes);
}

static void print_table(void)
{
	printf("%-28s %12s %12s %8s\n", "added per op", "median ns", "p99.9 ns", "ratio");
	for (unsigned i = 0; i < ROWS; i++) {
		const struct result *r = &rows[i].result;

		if (rows[i].is_there)
			printf("%-28s %12.1f %12.1f %8.2f\n", rows[i].what, r->median, r->p999,
			       r->ratio);
		else
			printf("%-28s %12s\n", rows[i].what, "not here");
	}
	printf("%-28s %12zu\n", "bytes per rank", (size_t)cw_record.total_bytes);
}

int main(int argc, char **argv)
{
	double limit = 1e9;
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (strcmp(argv[i], "--max") == 0 && i + 1 < argc) {
			limit = strtod(argv[++i], NULL);
		} else {
			fprintf(stderr, "usage: agent-bench [--json] [--max NS]\n");
			return 2;
		}
	}
	rows[PROGRESS].is_there = measure_progress(&rows[PROGRESS].result);
	if (!start_agent("off")) {
		fprintf(stderr, "no record\n");
		return 77;
	}
	rows[RECORD_ONLY].result = measure(plain, 1);
	rows[GROUPED].result = measure(grouped, GROUP_OPS);
	rows[P2P].result = measure(p2p, 1);
	rows[COLD].result = measure_cold();
	rows[LOOP].result = measure_loop();
	rows[LOOP].is_there = true;
	rows[RECORD_ONLY].is_there = rows[GROUPED].is_there = rows[P2P].is_there =
		rows[COLD].is_there = true;
	rows[TWO].is_there = measure_two(&rows[TWO].result);
	if (json)
		print_json();
	else
		print_table();
	return rows[RECORD_ONLY].result.median <= limit ? 0 : 1;
}
