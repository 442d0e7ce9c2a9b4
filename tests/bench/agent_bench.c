/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost that recording adds to one NCCL call on the host. Calls through a wrapper and calls of
 * the bare function take turns in one process, so that both see the same machine.
 *
 *	agent-bench [--json] [--max NS] [--smoke] [--unready]
 *
 * median: of the difference, over batches. p999: the 99.9th percentile of single calls through the
 * wrapper, less the cost of reading the clock. ratio: with the agent to without; the bare function
 * here does nothing, a real NCCL call takes microseconds. ops: the number of timed ops.
 *
 * cold: every line of 32 MiB is written before each call, with and without. load: the time of one
 * load of a cold page in the same rounds, the unit of a cold call's waits; to_load: the median in
 * loads. preloaded: the same calls in tests/bench/agent_cold.c, where program, NCCL and agent lie
 * far apart. captured: every stream is being captured into a graph. training_loop: steps of work on
 * a MiB and 16 ops; its ratio is the whole loop's, and its p999 of steps, not calls. step_callback:
 * a callback of the profiler plugin for a step of a network connection, five to a step; its ops are
 * callbacks. instructions,
 * cache_misses: in user space, added per call, null with the reason where the machine does not
 * count.
 *
 * The exit status is 1 unless the record has every timed op, NCCL was found before, and the time of
 * an op is of a sane order. A wrapper that only forwards is quick, and a wrapper that looks NCCL up
 * each time is slow, but we measure neither. --smoke: little of everything, for that alone.
 * --unready: NCCL's functions look as if the agent had not found them yet; exit status 0 when the
 * benchmark notices that. --max: exit status 1 when a recorded call's median is above. Exit status
 * 77 when there is no record, but 1 with --smoke.
 *
 * We measure progress and summaries in processes of their own, against a driver that does nothing:
 * the driver's own time for two writes or launches is not in it. The same goes for call stacks;
 * tests/bench/call-stacks-cost measures Python's.
 */
#include <errno.h>
#include <inttypes.h>
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
#include "agent/hooks/profiler_abi.h"
#include "agent/hooks/real.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/graph.h"
#include "agent/record/clock.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "tests/bench/agent_counters.h"
#include "tests/bench/agent_measure.h"
#include "tests/support/agent/cuda/fake_cuda.h"

#define COMMS 4
#define GROUP_OPS 8
#define STEPS_MAX 2001
#define STEP_OPS 16
#define STEP_BYTES (1u << 20)

/* An op takes longer than an instruction, and nothing the agent may do takes so long, warm or cold.
 */
#define LEAST_NS 1.0
#define MOST_NS 10000.0
#define MOST_COLD_NS 20000.0

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

/* The exported wrappers, as the loader would give them to a program, with their look-ups done. */
#define F(ret, name, since, how, params, args) ret name params;
#define F0(ret, name, since, how) ret name(void);
CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0

static bool is_unready;

static void fill_set(void)
{
	memcpy(&cw_real_sets[0], &fake, offsetof(struct cw_real, state));
	atomic_store(&cw_real_sets[0].owner, (uintptr_t)fake_all_reduce);
	atomic_store(&cw_real_sets[0].state, is_unready ? 0 : CW_REAL_READY);
}

/* ---- the calls ---- */

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
	static double with[STEPS_MAX], without[STEPS_MAX];
	unsigned n = extent.steps;
	struct result r;
	double empty;

	for (unsigned i = 0; i < n; i++) {
		without[i] = training_step(i, false);
		with[i] = training_step(i, true);
	}
	empty = percentile(without, n, 0.5);
	r = summary(with, without, n, percentile(with, n, 0.999) - empty, STEP_OPS);
	r.ops = (uint64_t)n * STEP_OPS;
	return r;
}

/* ---- two threads on two processors ---- */

static struct {
	pthread_barrier_t barrier;
	double with[BATCHES], without[BATCHES];
	uint64_t batches; /* with the agent */
	bool is_over;     /* atomic */
} second;

static void *run_second(void *arg)
{
	bool *is_pinned = arg;

	*is_pinned = pin(1);
	for (unsigned i = 0; i < extent.batches; i++, second.batches++) {
		(void)pthread_barrier_wait(&second.barrier);
		second.without[i] = batch(second_thread, false);
		(void)pthread_barrier_wait(&second.barrier);
		second.with[i] = batch(second_thread, true);
	}
	for (; !__atomic_load_n(&second.is_over, __ATOMIC_RELAXED); second.batches++)
		(void)batch(second_thread, true);
	return NULL;
}

/* No ops where there are no two processors. The calling thread is on its own from here on. */
static struct result measure_two(void)
{
	static double with[BATCHES], without[BATCHES];
	bool is_pinned = false;
	struct result r = { 0 };
	pthread_t thread;
	double p999;

	(void)pthread_barrier_init(&second.barrier, NULL, 2);
	if (pthread_create(&thread, NULL, run_second, &is_pinned) != 0)
		return r;
	(void)sched_yield();
	for (unsigned i = 0; i < extent.batches; i++) {
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
	r = summary(with, without, extent.batches, p999, 1);
	if (is_pinned)
		r.ops = (extent.batches + second.batches) * BATCH_CALLS + extent.singles;
	return r;
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

	while (!CW_LOAD(cw_clock.rate_generation) && now_ns() < until)
		(void)usleep(10000);
	return CW_LOAD(cw_clock.rate_generation);
}

struct row {
	const char *name, *what;
	double least_ns; /* of a sane median: work of its own may hide what a call adds */
	struct result result;
	uint64_t recorded; /* ops that came into the record meanwhile */
	const char *lacks; /* a side effect that did not happen, NULL = none */
	bool is_there;
};

/* All ops this process ever recorded, except those of communicators unknown to the agent. */
static uint64_t recorded(void)
{
	return CW_LOAD(cw_record.header->ring_ticket) -
	       CW_LOAD(cw_record.header->drops[CW_REC_DROP_OPS]);
}

static void measure_row(struct row *row, struct result (*measured)(void))
{
	uint64_t before = recorded();

	row->result = measured();
	row->recorded = recorded() - before;
	row->is_there = row->result.ops != 0;
	if (atomic_load(&cw_real_sets[0].state) != CW_REAL_READY)
		row->lacks = "NCCL's functions at hand: each call looked for them";
}

static struct result measure_plain(void)
{
	return measure(plain, 1);
}

static struct result measure_grouped(void)
{
	return measure(grouped, GROUP_OPS);
}

static struct result measure_p2p(void)
{
	return measure(p2p, 1);
}

static struct result measure_plain_cold(void)
{
	return measure_cold(plain);
}

/* ---- a step of a network connection, as NCCL's proxy reports it ---- */

#define STEP_CALLBACKS 5 /* start, three states, stop */

extern const struct cw_nccl_profiler_v5 ncclProfiler_v5;

static struct {
	void *context, *part;
	int next; /* number of the step */
} proxy;

static ELSEWHERE ncclResult_t fake_callback(void *handle, int state, void *args)
{
	__asm__ volatile("" ::: "memory");
	return ncclSuccess;
}

static void step_of_connection(unsigned i, bool with_agent)
{
	static const int states[] = { CW_NCCL_STATE_SEND_GPU_WAIT, CW_NCCL_STATE_SEND_PEER_WAIT,
				      CW_NCCL_STATE_SEND_WAIT };
	struct cw_nccl_event event = { .type = CW_NCCL_EVENT_PROXY_STEP,
				       .parent = proxy.part,
				       .proxy_step = { .number = proxy.next } };
	struct cw_nccl_step_args args = { .bytes = 65536 };
	void *step = NULL;

	if (!with_agent) {
		for (unsigned n = 0; n < STEP_CALLBACKS; n++)
			(void)fake_callback(&event, (int)i, &args);
		return;
	}
	(void)ncclProfiler_v5.start_event(proxy.context, &step, &event);
	for (unsigned n = 0; n < sizeof(states) / sizeof(states[0]); n++)
		(void)ncclProfiler_v5.record_event_state(step, states[n], &args);
	(void)ncclProfiler_v5.stop_event(step);
	proxy.next++;
}

static struct result measure_steps(void)
{
	return measure(step_of_connection, STEP_CALLBACKS);
}

/* The steps that the record counts as done, on all connections. */
static uint64_t steps_done(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CW_REC_CONNECTIONS; i++)
		n += CW_LOAD(cw_record.connections[i].counts[CW_REC_STEP_DONE]);
	return n;
}

static void measure_proxy(struct row *row)
{
	struct cw_nccl_event event = {
		.type = CW_NCCL_EVENT_PROXY_OP,
		.proxy_op = { .pid = getpid(), .peer = 1, .steps = INT32_MAX, .is_send = 1 }
	};
	int mask = 0;

	(void)ncclProfiler_v5.init(&proxy.context, 1, &mask, NULL, 2, 2, 0, NULL);
	(void)ncclProfiler_v5.start_event(proxy.context, &proxy.part, &event);
	if (!proxy.part) {
		row->lacks = "a connection";
		return;
	}
	measure_row(row, measure_steps);
	row->recorded = STEP_CALLBACKS * steps_done();
	(void)ncclProfiler_v5.stop_event(proxy.part);
	(void)ncclProfiler_v5.finalize(proxy.context);
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

struct way {
	const char *progress, *summaries;
	uint32_t must_have; /* CW_REC_HAS_* */
};

/* Has the op that was recorded last a call stack? */
static bool has_stack(void)
{
	uint64_t last = recorded() - 1;
	uint32_t id = CW_LOAD(cw_record.ring[last & (CW_REC_RING_OPS - 1)].stack_id);

	return id && id <= CW_REC_STACKS && CW_LOAD(cw_record.stacks[id - 1].publish);
}

/* Was it only recorded, or also done what makes this call dearer? */
static const char *lack_of(const struct way *way, uint64_t ops)
{
	uint64_t untracked = CW_LOAD(cw_record.header->progress_untracked);

	/* Two for each op; with "auto", later ones cover the omitted ones. */
	if ((way->must_have & CW_REC_HAS_PROGRESS) && fake_cuda.writes < 2 * (ops - untracked))
		return "writes of progress";
	if ((way->must_have & CW_REC_HAS_SUMMARIES) && !fake_cuda.launches)
		return "kernels that summarize";
	if ((way->must_have & CW_REC_HAS_STACKS) && !has_stack())
		return "call stacks";
	return NULL;
}

/* Frames lie in files whose places the helper thread finds out. */
static void wait_for_stack(void)
{
	double until = now_ns() + 4e9;

	do {
		plain(0, true);
		(void)usleep(10000);
	} while (!has_stack() && now_ns() < until);
}

struct answer {
	struct result result;
	uint64_t recorded;
	const char *lacks; /* a literal: the child is a copy of its parent */
};

static void answer(const struct way *way, bool is_brief, int fd)
{
	struct row row = { 0 };
	struct answer a;

	(void)setenv("COLLWATCH_SUMMARY", way->summaries, 1);
	if (way->must_have & CW_REC_HAS_STACKS)
		(void)setenv("COLLWATCH_CALL_STACKS", "on", 1);
	fake_cuda.computes_nothing = true;
	if (!start_agent(way->progress) ||
	    (cw_record.header->has & way->must_have) != way->must_have)
		_exit(1);
	if (!is_brief)
		(void)wait_for_clock();
	if (way->must_have & CW_REC_HAS_STACKS)
		wait_for_stack();
	measure_row(&row, measure_plain);
	if (!row.lacks)
		row.lacks = lack_of(way, row.result.ops);
	a = (struct answer){ row.result, row.recorded, row.lacks };
	_exit(write(fd, &a, sizeof(a)) == (ssize_t)sizeof(a) ? 0 : 1);
}

/* In a child: a process sets up the agent's other features only once. */
static void measure_in_child(struct row *row, struct way way, bool is_brief)
{
	int fds[2], status = 0;
	struct answer a = { 0 };
	ssize_t n;
	pid_t pid;

	if (pipe(fds) < 0)
		return;
	pid = fork();
	if (pid == 0)
		answer(&way, is_brief, fds[1]);
	(void)close(fds[1]);
	n = pid < 0 ? -1 : read(fds[0], &a, sizeof(a));
	(void)close(fds[0]);
	row->is_there = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
			n == (ssize_t)sizeof(a);
	row->result = a.result;
	row->recorded = a.recorded;
	row->lacks = row->is_there ? a.lacks : "a process of its own that could measure it";
}

/* In a program of its own, where the agent is a library that was preloaded: it looks itself. */
static void measure_preloaded(struct row *row, bool is_brief)
{
	/* NOLINTNEXTLINE(cert-env33-c): a command of ours */
	FILE *f = popen(is_brief ? "LD_PRELOAD=" CW_BENCH_AGENT " " CW_BENCH_COLD " --smoke"
				 : "LD_PRELOAD=" CW_BENCH_AGENT " " CW_BENCH_COLD,
			"re");
	struct result *r = &row->result;
	bool ok = f && fscanf(f, "%lf %lf %lf %lf %" SCNu64, &r->median, &r->p999, &r->ratio,
			      &r->load, &r->ops) == 5;

	row->is_there = f && pclose(f) == 0 && ok;
	row->lacks = row->is_there ? NULL : "a program whose calls are in its record";
	row->recorded = r->ops;
}

enum {
	RECORD_ONLY,
	GROUPED,
	P2P,
	CAPTURED,
	LOOP,
	STEP,
	TWO,
	COLD,
	PRELOADED,
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
	[LOOP] = { .name = "training_loop_ns",
		   .what = "an op of a training loop",
		   .least_ns = -MOST_NS },
	[STEP] = { .name = "step_callback_ns", .what = "a callback of a network step" },
	[TWO] = { .name = "two_threads_ns", .what = "one call, two threads" },
	[COLD] = { .name = "cold_ns", .what = "one call, cold caches" },
	[PRELOADED] = { .name = "cold_preloaded_ns", .what = "one call, cold, preloaded" },
	[PROGRESS] = { .name = "with_progress_ns", .what = "one call, device progress" },
	[AUTO] = { .name = "with_progress_auto_ns", .what = "one call, progress=auto" },
	[SUMMARIES] = { .name = "with_summaries_ns", .what = "one call, all summaries" },
	[SAMPLED] = { .name = "with_sampled_summaries_ns", .what = "one call, sampled summaries" },
	[STACKS] = { .name = "with_call_stacks_ns", .what = "one call, native call stacks" },
};

static struct counted instructions, cache_misses;

static void measure_rows(bool is_brief)
{
	cpu_set_t all;

	(void)sched_getaffinity(0, sizeof(all), &all);
	(void)pin(0);
	measure_row(&rows[RECORD_ONLY], measure_plain);
	measure_row(&rows[GROUPED], measure_grouped);
	measure_row(&rows[P2P], measure_p2p);
	measure_row(&rows[COLD], measure_plain_cold);
	measure_row(&rows[LOOP], measure_loop);
	measure_proxy(&rows[STEP]);
	count_instructions(plain, &instructions);
	count_cache_misses(plain, &cache_misses);
	measure_row(&rows[CAPTURED], measure_captured);
	(void)sched_setaffinity(0, sizeof(all), &all);
	measure_row(&rows[TWO], measure_two);
	measure_preloaded(&rows[PRELOADED], is_brief);
}

static void measure_ways(bool is_brief)
{
	measure_in_child(&rows[PROGRESS], (struct way){ "on", "off", CW_REC_HAS_PROGRESS },
			 is_brief);
	/* Leaves writes out, where it knows of the device's times. */
	measure_in_child(&rows[AUTO], (struct way){ "auto", "off", CW_REC_HAS_PROGRESS }, is_brief);
	measure_in_child(&rows[SUMMARIES], (struct way){ "on", "full", CW_REC_HAS_SUMMARIES },
			 is_brief);
	measure_in_child(&rows[SAMPLED], (struct way){ "on", "sampled", CW_REC_HAS_SUMMARIES },
			 is_brief);
	measure_in_child(&rows[STACKS], (struct way){ "off", "off", CW_REC_HAS_STACKS }, is_brief);
}

/* Did we time the intended calls? Returns the deviation. */
static bool is_real(const struct row *row)
{
	const struct result *r = &row->result;
	bool ok = true;

	if (row->lacks) {
		fprintf(stderr, "agent-bench: %s: without %s\n", row->name, row->lacks);
		ok = false;
	}
	if (!row->is_there)
		return ok;
	if (row->recorded != r->ops) {
		fprintf(stderr,
			"agent-bench: %s: %" PRIu64 " ops were timed, %" PRIu64
			" are in the record\n",
			row->name, r->ops, row->recorded);
		ok = false;
	}
	if (r->median < (row->least_ns ? row->least_ns : LEAST_NS) ||
	    r->median > (r->load > 0 ? MOST_COLD_NS : MOST_NS)) {
		fprintf(stderr, "agent-bench: %s: %.1f ns an op is no sane figure\n", row->name,
			r->median);
		ok = false;
	}
	return ok;
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

		if (!rows[i].is_there) {
			printf("\"%s\": null, ", rows[i].name);
			continue;
		}
		printf("\"%s\": {\"median\": %.1f, \"p999\": %.1f, \"ratio\": %.2f, ", rows[i].name,
		       r->median, r->p999, r->ratio);
		if (r->load > 0)
			printf("\"load\": %.1f, \"to_load\": %.2f, ", r->load, r->median / r->load);
		printf("\"ops\": %" PRIu64 "}, ", r->ops);
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
	printf("%-28s %12s %12s %8s %12s\n", "added per op", "median ns", "p99.9 ns", "ratio",
	       "cold loads");
	for (unsigned i = 0; i < ROWS; i++) {
		const struct result *r = &rows[i].result;

		if (!rows[i].is_there)
			printf("%-28s %12s\n", rows[i].what, "not here");
		else if (r->load > 0)
			printf("%-28s %12.1f %12.1f %8.2f %5.2f x %.0f\n", rows[i].what, r->median,
			       r->p999, r->ratio, r->median / r->load, r->load);
		else
			printf("%-28s %12.1f %12.1f %8.2f\n", rows[i].what, r->median, r->p999,
			       r->ratio);
	}
	print_count("instructions of a call", &instructions);
	print_count("cache misses of a call", &cache_misses);
	printf("%-28s %12s\n", "clock", has_clock ? "processor's" : "library's");
	printf("%-28s %12zu\n", "bytes per rank", (size_t)cw_record.total_bytes);
}

int main(int argc, char **argv)
{
	double limit = MOST_NS;
	bool json = false, is_brief = false, has_clock, ok = true;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (strcmp(argv[i], "--smoke") == 0) {
			is_brief = true;
		} else if (strcmp(argv[i], "--unready") == 0) {
			is_unready = true;
		} else if (strcmp(argv[i], "--max") == 0 && i + 1 < argc) {
			limit = strtod(argv[++i], NULL);
		} else {
			fprintf(stderr, "usage: agent-bench [--json] [--max NS] [--smoke] "
					"[--unready]\n");
			return 2;
		}
	}
	if (is_brief)
		measure_seldom();
	if (!is_unready)
		measure_ways(is_brief);
	if (!start_agent("off")) {
		fprintf(stderr, "no record\n");
		return is_brief ? 1 : 77;
	}
	if (is_unready) {
		measure_row(&rows[RECORD_ONLY], measure_plain);
		(void)is_real(&rows[RECORD_ONLY]);
		return rows[RECORD_ONLY].lacks ? 0 : 1;
	}
	has_clock = !is_brief && wait_for_clock();
	measure_rows(is_brief);
	if (json)
		print_json(has_clock);
	else
		print_table(has_clock);
	for (unsigned i = 0; i < ROWS; i++)
		ok = is_real(&rows[i]) && ok;
	return ok && rows[RECORD_ONLY].result.median <= limit ? 0 : 1;
}
