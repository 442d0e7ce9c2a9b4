/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording adds to one NCCL call on the host. Calls through a wrapper and calls of the bare
 * function take turns in one process, so that both see the same machine.
 *
 *	agent-bench [--json] [--max NS]
 *
 * median: of the difference, over batches. p999: the 99.9th percentile of single calls through the
 * wrapper, less what reading the clock costs. ratio: with the agent to without; the bare function
 * here does nothing, a real NCCL call takes microseconds. cold: every line of 32 MiB is written
 * before each call, with and without; cold_page is what one load of a page takes then, the unit
 * that a cold call waits in. preloaded: the same calls in tests/bench/agent_cold.c, where program,
 * NCCL and agent lie far apart. captured: every stream is being captured into a graph.
 *training_loop: steps of work on a MiB and 16 ops; its ratio is the whole loop's, and its p999 of
 *steps, not calls. instructions, cache_misses: in user space, added per call, null with the reason
 *where the machine does not count. --max: exit status 1 when a recorded call's median is above.
 *Exit status 77 when there is no record.
 *
 * Progress and summaries are measured in processes of their own, against a driver that does
 * nothing: what the driver itself takes for two writes or launches is not in it. Call stacks, too;
 * those of Python are measured by tests/bench/call-stacks-cost.
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
#include <unistd.h>

#include "agent/agent.h"
#include "agent/clock.h"
#include "agent/graph.h"
#include "agent/record.h"
#include "agent/wrap.h"
#include "common/op.h"
#include "tests/bench/agent_counters.h"
#include "tests/bench/agent_measure.h"
#include "tests/unit/agent_cuda/fake_cuda.h"

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

/* Code of another library is never on the caller's page, and as cold as everything else. */
#define ELSEWHERE __attribute__((noinline, section("bench_nccl")))

static ELSEWHERE __attribute__((aligned(4096))) ncclResult_t
fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c, cudaStream_t st)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

static ELSEWHERE ncclResult_t fake_send(const void *s, size_t n, int dt, int peer, ncclComm_t c,
					cudaStream_t st)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

static ELSEWHERE ncclResult_t fake_group(void)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

/* Nothing else on that page. */
static ELSEWHERE __attribute__((aligned(4096), used)) void fake_end(void)
{
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclSend = fake_send,
	.ncclGroupStart = fake_group,
	.ncclGroupEnd = fake_group,
	.ncclCommInitRank = fake_init,
};

static ncclComm_t comms[COMMS];

/* The exported wrappers, as the loader would give them to a program: what they need is filled in.
 */
#define F(ret, name, since, how, params, args) ret name params;
#define F0(ret, name, since, how) ret name(void);
CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0

static void fill_set(void)
{
	memcpy(&cw_real_sets[0], &fake, offsetof(struct cw_real, state));
	atomic_store(&cw_real_sets[0].state, 2);
}

/* ---- what is called ---- */

static void all_reduce(ncclComm_t comm, bool with_agent)
{
	if (with_agent)
		(void)ncclAllReduce(&comms, &comms, 1000, CW_DTYPE_BF16, CW_REDOP_SUM, comm, NULL);
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
		(void)ncclSend(&comms, 1000, CW_DTYPE_BF16, (int)(i % 7) + 1, comms[0], NULL);
	else
		(void)fake_send(&comms, 1000, CW_DTYPE_BF16, (int)(i % 7) + 1, comms[0], NULL);
}

static void grouped(unsigned i, bool with_agent)
{
	if (with_agent)
		(void)ncclGroupStart();
	else
		(void)fake_group();
	for (unsigned n = 0; n < GROUP_OPS; n++)
		all_reduce(comms[i % COMMS], with_agent);
	if (with_agent)
		(void)ncclGroupEnd();
	else
		(void)fake_group();
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
	fill_set();
	fake_cuda.current = fake_cuda.stream_owner = &context;
	for (unsigned i = 0; i < COMMS; i++) {
		ncclUniqueId id = { { (char)i } };

		(void)ncclCommInitRank(&comms[i], 8, id, 0);
	}
	return cw_agent_is_armed();
}

/* As long as a process has a rate for its clock, which comes with the helper thread's second beat.
 */
static bool wait_for_clock(void)
{
	double until = now_ns() + 4e9;

	while (!CW_LOAD(cw_clock.turn) && now_ns() < until)
		(void)usleep(10000);
	return CW_LOAD(cw_clock.turn);
}

/* In a child: what the agent of a process does besides recording is settled once. */
static bool measure_in_child(const char *progress, const char *summaries, uint32_t must_have,
			     struct result *ret)
{
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(fds) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		struct result r;

		(void)setenv("COLLWATCH_SUMMARY", summaries, 1);
		if (must_have & CW_REC_HAS_STACKS)
			(void)setenv("COLLWATCH_CALL_STACKS", "on", 1);
		fake_cuda.computes_nothing = true;
		if (!start_agent(progress) || (cw_record.header->has & must_have) != must_have)
			_exit(1);
		(void)wait_for_clock();
		r = measure(plain, 1);
		_exit(write(fds[1], &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 1);
	}
	(void)close(fds[1]);
	n = pid < 0 ? -1 : read(fds[0], ret, sizeof(*ret));
	(void)close(fds[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
	       n == (ssize_t)sizeof(*ret);
}

/* In a program of its own, where the agent is a library that was preloaded. */
static bool measure_preloaded(struct result *ret)
{
	FILE *f = popen("LD_PRELOAD=" CW_BENCH_AGENT " " CW_BENCH_COLD, "re");
	bool ok;

	if (!f)
		return false;
	ok = fscanf(f, "%lf %lf %lf", &ret->median, &ret->p999, &ret->ratio) == 3;
	return pclose(f) == 0 && ok;
}

/* Every stream is being captured into one graph, for as long as this takes. */
static struct result measure_captured(void)
{
	static char graph;
	struct result r;

	cw_graph_capture_seen();
	fake_cuda.graph = &graph;
	fake_cuda.capture_id++;
	fake_cuda.capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	r = measure(plain, 1);
	fake_cuda.capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
	return r;
}

struct row {
	const char *name, *what;
	struct result result;
	bool is_there;
};

enum {
	RECORD_ONLY,
	GROUPED,
	P2P,
	CAPTURED,
	LOOP,
	TWO,
	COLD,
	PRELOADED,
	PAGE,
	PROGRESS,
	AUTO,
	SUMMARIES,
	SAMPLED,
	STACKS,
	ROWS,
};

static struct row rows[ROWS] = {
	[RECORD_ONLY] = { .name = "record_only_ns", .what = "one call" },
	[GROUPED] = { .name = "grouped_ns", .what = "a call in a group of 8" },
	[P2P] = { .name = "p2p_ns", .what = "a send" },
	[CAPTURED] = { .name = "captured_ns", .what = "a call captured into a graph" },
	[LOOP] = { .name = "training_loop_ns", .what = "an op of a training loop" },
	[TWO] = { .name = "two_threads_ns", .what = "one call, two threads" },
	[COLD] = { .name = "cold_ns", .what = "one call, cold caches" },
	[PRELOADED] = { .name = "cold_preloaded_ns", .what = "one call, cold, preloaded" },
	[PAGE] = { .name = "cold_page_ns", .what = "(one load of a cold page)" },
	[PROGRESS] = { .name = "with_progress_ns", .what = "one call, device progress" },
	[AUTO] = { .name = "with_progress_auto_ns", .what = "one call, progress=auto" },
	[SUMMARIES] = { .name = "with_summaries_ns", .what = "one call, all summaries" },
	[SAMPLED] = { .name = "with_sampled_summaries_ns", .what = "one call, sampled summaries" },
	[STACKS] = { .name = "with_call_stacks_ns", .what = "one call, native call stacks" },
};

static struct counted instructions, cache_misses;

static void measure_rows(void)
{
	cpu_set_t all;

	(void)sched_getaffinity(0, sizeof(all), &all);
	(void)pin(0);
	rows[RECORD_ONLY].result = measure(plain, 1);
	rows[GROUPED].result = measure(grouped, GROUP_OPS);
	rows[P2P].result = measure(p2p, 1);
	rows[COLD].result = measure_cold(plain);
	rows[PAGE].result = measure_page();
	rows[LOOP].result = measure_loop();
	count_instructions(plain, &instructions);
	count_cache_misses(plain, &cache_misses);
	rows[CAPTURED].result = measure_captured();
	(void)sched_setaffinity(0, sizeof(all), &all);
	for (unsigned i = 0; i < PROGRESS; i++)
		rows[i].is_there = true;
	rows[TWO].is_there = measure_two(&rows[TWO].result);
	rows[PRELOADED].is_there = measure_preloaded(&rows[PRELOADED].result);
}

static void print_json_count(const char *name, const struct counted *c)
{
	if (c->is_there)
		printf("\"%s\": %.2f, ", name, c->median);
	else
		printf("\"%s\": null, \"%s_why\": \"%s\", ", name, name, c->why);
}

static void print_json(bool has_clock)
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
	print_json_count("instructions", &instructions);
	print_json_count("cache_misses", &cache_misses);
	printf("\"clock\": \"%s\", \"bytes_per_rank\": %zu}\n", has_clock ? "processor" : "library",
	       (size_t)cw_record.total_bytes);
}

static void print_count(const char *what, const struct counted *c)
{
	if (c->is_there)
		printf("%-28s %12.1f\n", what, c->median);
	else
		printf("%-28s %12s (%s)\n", what, "not here", c->why);
}

static void print_table(bool has_clock)
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
	print_count("instructions of a call", &instructions);
	print_count("cache misses of a call", &cache_misses);
	printf("%-28s %12s\n", "clock", has_clock ? "processor's" : "library's");
	printf("%-28s %12zu\n", "bytes per rank", (size_t)cw_record.total_bytes);
}

int main(int argc, char **argv)
{
	double limit = 1e9;
	bool json = false, has_clock;

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
	rows[PROGRESS].is_there =
		measure_in_child("on", "off", CW_REC_HAS_PROGRESS, &rows[PROGRESS].result);
	rows[AUTO].is_there =
		measure_in_child("auto", "off", CW_REC_HAS_PROGRESS, &rows[AUTO].result);
	rows[SUMMARIES].is_there =
		measure_in_child("on", "full", CW_REC_HAS_SUMMARIES, &rows[SUMMARIES].result);
	rows[SAMPLED].is_there =
		measure_in_child("on", "sampled", CW_REC_HAS_SUMMARIES, &rows[SAMPLED].result);
	rows[STACKS].is_there =
		measure_in_child("off", "off", CW_REC_HAS_STACKS, &rows[STACKS].result);
	if (!start_agent("off")) {
		fprintf(stderr, "no record\n");
		return 77;
	}
	has_clock = wait_for_clock();
	measure_rows();
	if (json)
		print_json(has_clock);
	else
		print_table(has_clock);
	return rows[RECORD_ONLY].result.median <= limit ? 0 : 1;
}
