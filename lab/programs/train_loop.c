/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training-like loop over NCCL: the communication of a data-parallel, optionally tensor-parallel
 * job in a step, with arithmetic small enough to check every result. train_loop.py is the same
 * program in Python; both print the same checksums for the same arguments.
 *
 * An ordinary NCCL program that knows nothing about watchers. Faults are options, as any program
 * can go wrong: --fault block-in-data-loader | wait-for-lock | wrong-count | kill-self.
 *
 * All numbers are small integers, so sums in floating point are exact in any order.
 */
#include <cuda.h>
#include <errno.h>
#include <getopt.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab/programs/train_place.h"
#include "lab/programs/train_store.h"

#define CHECK_CU(call)                                                                             \
	do {                                                                                       \
		CUresult cu_r_ = (call);                                                           \
		if (cu_r_ != CUDA_SUCCESS)                                                         \
			die("%s: CUDA error %d", #call, (int)cu_r_);                               \
	} while (0)
#define CHECK_NCCL(call)                                                                           \
	do {                                                                                       \
		ncclResult_t nccl_r_ = (call);                                                     \
		if (nccl_r_ != ncclSuccess)                                                        \
			die("%s: %s", #call, ncclGetErrorString(nccl_r_));                         \
	} while (0)

/* Rank 0 announces a new learning rate at this interval. */
#define SCHEDULE_STEPS 10

enum buffer {
	ACTIVATIONS, /* all_reduce over the tensor-parallel group */
	BUCKET_A,    /* gradients, all_reduce over the data-parallel group, two in one group call */
	BUCKET_B,
	NORMS,  /* all_reduce over all ranks */
	GRADS,  /* reduce_scatter over the data-parallel group: one SHARD per rank */
	SHARD,  /* the part of this rank */
	PARAMS, /* all_gather of the shards */
	LOSS,   /* one number, all_reduce over all ranks */
	RATE,   /* one number, broadcast */
	NUM_BUFFERS,
};

struct trainer {
	int rank, world, local_rank, tp, dp, tp_rank, dp_rank;
	size_t elements;
	CUstream stream;
	ncclComm_t world_comm, tp_comm, dp_comm;
	CUdeviceptr dev[NUM_BUFFERS];
	float *host[NUM_BUFFERS];
	size_t count[NUM_BUFFERS];
	uint64_t checksum;
};

static long arg_steps = 100;
static long arg_step_ms;
static long arg_tp = 1;
static long arg_elements = 256;
static long arg_log_every = 10;
static const char *arg_uid_file;
static const char *arg_fault = "";
static long arg_fault_rank = -1;
static long arg_fault_step;
static const char *arg_fault_file;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "train_loop: rank %s: ", getenv("RANK") ? getenv("RANK") : "?");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* ---- faults ---- */

static bool fault_strikes(const struct trainer *t, long step, const char *kind)
{
	return strcmp(arg_fault, kind) == 0 && t->rank == arg_fault_rank && step == arg_fault_step;
}

/* Announces the fault: first its time in a file, then in words. */
static void announce_fault(const struct trainer *t, long step)
{
	struct timespec ts;
	char text[32];
	int n;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	n = snprintf(text, sizeof(text), "%lld\n",
		     (long long)ts.tv_sec * 1000000000LL + ts.tv_nsec);
	if (arg_fault_file && train_file_put(arg_fault_file, text, (size_t)n) < 0)
		die("cannot write %s", arg_fault_file);
	fprintf(stderr, "fault: rank %d step %ld %s\n", t->rank, step, arg_fault);
}

/* ---- a step ---- */

static pthread_mutex_t samples = PTHREAD_MUTEX_INITIALIZER;

/* Another reader, which holds the lock and never returns. */
static void *read_ahead(void *arg)
{
	int fds[2];
	char byte;

	(void)pthread_mutex_lock(&samples);
	(void)pthread_barrier_wait(arg);
	if (pipe(fds) < 0 || read(fds[0], &byte, 1) != 1)
		die("the data source is gone");
	return NULL;
}

static void wait_for_reader(void)
{
	pthread_barrier_t has_it;
	pthread_t reader;

	if (pthread_barrier_init(&has_it, NULL, 2) ||
	    pthread_create(&reader, NULL, read_ahead, &has_it))
		die("no thread reads ahead");
	(void)pthread_barrier_wait(&has_it);
	(void)pthread_mutex_lock(&samples);
}

/* Waits for the storage system's answer, a byte in a pipe. Without a writer, it never comes. */
__attribute__((noinline)) static int read_sample(const struct trainer *t, long step)
{
	int fds[2];
	char byte;

	if (fault_strikes(t, step, "block-in-data-loader")) {
		announce_fault(t, step);
		if (pipe(fds) < 0 || read(fds[0], &byte, 1) != 1)
			die("the data source is gone");
	}
	if (fault_strikes(t, step, "wait-for-lock")) {
		announce_fault(t, step);
		wait_for_reader();
	}
	return (int)((step * 31 + t->dp_rank * 17 + 7) % 101);
}

__attribute__((noinline)) static int data_loader_next(const struct trainer *t, long step)
{
	return read_sample(t, step);
}

static int sample_of(long step, int dp_rank)
{
	return (int)((step * 31 + dp_rank * 17 + 7) % 101);
}

/* The activation after the all_reduce, for ranks of one tensor-parallel group. */
static long activation(const struct trainer *t, int sample, size_t i)
{
	long sum = 0;

	for (int p = 0; p < t->tp; p++)
		sum += (sample + (long)i + 3 * p) % 13;
	return sum;
}

static void upload(struct trainer *t, enum buffer b)
{
	CHECK_CU(cuMemcpyHtoDAsync(t->dev[b], t->host[b], t->count[b] * sizeof(float), t->stream));
}

static void download(struct trainer *t, enum buffer b)
{
	CHECK_CU(cuMemcpyDtoHAsync(t->host[b], t->dev[b], t->count[b] * sizeof(float), t->stream));
}

static void expect(const struct trainer *t, long step, const char *what, enum buffer b, size_t i,
		   long want)
{
	if ((long)t->host[b][i] != want)
		die("step %ld: %s[%zu] is %g, should be %ld", step, what, i, (double)t->host[b][i],
		    want);
}

static void *ptr(const struct trainer *t, enum buffer b)
{
	return (void *)(uintptr_t)t->dev[b];
}

static void all_reduce(struct trainer *t, enum buffer b, size_t count, ncclComm_t comm)
{
	CHECK_NCCL(ncclAllReduce(ptr(t, b), ptr(t, b), count, ncclFloat, ncclSum, comm, t->stream));
}

static void forward(struct trainer *t, long step, int sample)
{
	const size_t probes[] = { 0, t->elements / 2, t->elements - 1 };

	for (size_t i = 0; i < t->elements; i++)
		t->host[ACTIVATIONS][i] = (float)((sample + (long)i + 3 * t->tp_rank) % 13);
	if (t->tp_comm) {
		upload(t, ACTIVATIONS);
		all_reduce(t, ACTIVATIONS, t->elements, t->tp_comm);
		download(t, ACTIVATIONS);
		CHECK_CU(cuStreamSynchronize(t->stream));
	}
	for (size_t i = 0; i < 3; i++)
		expect(t, step, "activation", ACTIVATIONS, probes[i],
		       activation(t, sample, probes[i]));
}

static void compute(void)
{
	struct timespec ts = { .tv_sec = arg_step_ms / 1000,
			       .tv_nsec = arg_step_ms % 1000 * 1000000 };

	while (arg_step_ms > 0 && nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static long grad_a(long act, int dp_rank, size_t i)
{
	return (act + dp_rank + (long)i) % 7;
}

static void fill_gradients(struct trainer *t, long step)
{
	for (size_t i = 0; i < t->elements; i++) {
		long act = (long)t->host[ACTIVATIONS][i];

		t->host[BUCKET_A][i] = (float)grad_a(act, t->dp_rank, i);
		t->host[BUCKET_B][i] = (float)((act * 2 + step + (long)i) % 5);
		t->host[NORMS][i] = (float)((t->rank + (long)i) % 3);
	}
	for (size_t i = 0; i < t->count[GRADS]; i++)
		t->host[GRADS][i] =
			(float)(((long)t->host[ACTIVATIONS][i % t->elements] + (long)i) % 9);
	upload(t, BUCKET_A);
	upload(t, BUCKET_B);
	upload(t, NORMS);
	upload(t, GRADS);
}

static void check_gradients(struct trainer *t, long step)
{
	const size_t probes[] = { 0, t->elements - 1 };

	for (size_t n = 0; n < 2; n++) {
		size_t i = probes[n];
		long a = 0, norm = 0;

		for (int d = 0; d < t->dp; d++)
			a += grad_a(activation(t, sample_of(step, d), i), d, i);
		for (int r = 0; r < t->world; r++)
			norm += (r + (long)i) % 3;
		expect(t, step, "gradient", BUCKET_A, i, a);
		expect(t, step, "norm", NORMS, i, norm);
	}
	for (size_t i = 0; i < t->count[SHARD]; i++)
		expect(t, step, "parameter", PARAMS, (size_t)t->dp_rank * t->count[SHARD] + i,
		       (long)t->host[SHARD][i]);
}

static void backward(struct trainer *t, long step)
{
	bool is_short = fault_strikes(t, step, "wrong-count");

	fill_gradients(t, step);
	CHECK_NCCL(ncclGroupStart());
	all_reduce(t, BUCKET_A, t->elements, t->dp_comm);
	all_reduce(t, BUCKET_B, t->elements, t->dp_comm);
	CHECK_NCCL(ncclGroupEnd());
	if (fault_strikes(t, step, "kill-self")) {
		announce_fault(t, step);
		kill(getpid(), SIGKILL);
	}
	if (is_short)
		announce_fault(t, step);
	all_reduce(t, NORMS, is_short ? t->elements / 2 : t->elements, t->world_comm);
	CHECK_NCCL(ncclReduceScatter(ptr(t, GRADS), ptr(t, SHARD), t->count[SHARD], ncclFloat,
				     ncclSum, t->dp_comm, t->stream));
	CHECK_NCCL(ncclAllGather(ptr(t, SHARD), ptr(t, PARAMS), t->count[SHARD], ncclFloat,
				 t->dp_comm, t->stream));
	for (int b = BUCKET_A; b <= PARAMS; b++) {
		if (b != GRADS)
			download(t, (enum buffer)b);
	}
	CHECK_CU(cuStreamSynchronize(t->stream));
	check_gradients(t, step);
}

static long sum(const struct trainer *t, enum buffer b)
{
	long total = 0;

	for (size_t i = 0; i < t->count[b]; i++)
		total += (long)t->host[b][i];
	return total;
}

/* Hashes all results into one number, equal on every rank. */
static void finish_step(struct trainer *t, long step)
{
	long mine = sum(t, ACTIVATIONS) + sum(t, BUCKET_A) + sum(t, BUCKET_B) + sum(t, PARAMS);

	t->host[LOSS][0] = (float)(mine % 1000);
	upload(t, LOSS);
	all_reduce(t, LOSS, 1, t->world_comm);
	download(t, LOSS);
	if (step % SCHEDULE_STEPS == 0) {
		t->host[RATE][0] = t->rank == 0 ? (float)(step % 17) : -1;
		upload(t, RATE);
		CHECK_NCCL(ncclBroadcast(ptr(t, RATE), ptr(t, RATE), 1, ncclFloat, 0, t->world_comm,
					 t->stream));
		download(t, RATE);
	}
	CHECK_CU(cuStreamSynchronize(t->stream));
	if (step % SCHEDULE_STEPS == 0)
		expect(t, step, "learning rate", RATE, 0, step % 17);
	t->checksum =
		t->checksum * 1000003 + (uint64_t)t->host[LOSS][0] + (uint64_t)t->host[RATE][0];
}

static void train_step(struct trainer *t, long step)
{
	int sample = data_loader_next(t, step);

	forward(t, step, sample);
	compute();
	backward(t, step);
	finish_step(t, step);
}

/* ---- start and end ---- */

static void exchange_id(const struct trainer *t, ncclUniqueId *id)
{
	const char *addr = train_env("MASTER_ADDR", "127.0.0.1");
	const char *port = train_env("MASTER_PORT", "29500");
	int r;

	if (t->rank == 0) {
		CHECK_NCCL(ncclGetUniqueId(id));
		r = arg_uid_file ? train_file_put(arg_uid_file, id, sizeof(*id))
				 : train_store_serve(addr, port, t->world, id, sizeof(*id));
	} else {
		r = arg_uid_file ? train_file_get(arg_uid_file, id, sizeof(*id))
				 : train_store_fetch(addr, port, id, sizeof(*id));
	}
	if (r < 0)
		die("cannot exchange the unique id: %s", strerror(-r));
}

static void open_device(struct trainer *t)
{
	CUcontext ctx;
	CUdevice dev;
	int count;

	CHECK_CU(cuInit(0));
	CHECK_CU(cuDeviceGetCount(&count));
	CHECK_CU(cuDeviceGet(&dev, t->local_rank % count));
	CHECK_CU(cuDevicePrimaryCtxRetain(&ctx, dev));
	CHECK_CU(cuCtxSetCurrent(ctx));
	CHECK_CU(cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
	for (int b = 0; b < NUM_BUFFERS; b++) {
		CHECK_CU(cuMemAlloc(&t->dev[b], t->count[b] * sizeof(float)));
		/* Pinned: copies of pageable memory would delay the host in every step. */
		CHECK_CU(cuMemAllocHost((void **)&t->host[b], t->count[b] * sizeof(float)));
		memset(t->host[b], 0, t->count[b] * sizeof(float));
	}
}

static void trainer_init(struct trainer *t)
{
	struct train_place place;
	const char *bad = train_place_read(&place);

	if (bad)
		die("%s: not a number: %s", bad, getenv(bad));
	t->rank = place.rank;
	t->world = place.world;
	t->local_rank = place.local_rank;
	t->tp = (int)arg_tp;
	if (t->tp < 1 || t->world < 1 || t->rank >= t->world || t->world % t->tp != 0)
		die("rank %d of %d in groups of %d", t->rank, t->world, t->tp);
	t->dp = t->world / t->tp;
	t->tp_rank = t->rank % t->tp;
	t->dp_rank = t->rank / t->tp;
	t->elements = (size_t)arg_elements;
	for (int b = 0; b < NUM_BUFFERS; b++)
		t->count[b] = t->elements;
	t->count[SHARD] = t->elements / 4;
	t->count[GRADS] = t->count[PARAMS] = t->count[SHARD] * (size_t)t->dp;
	t->count[LOSS] = t->count[RATE] = 1;
}

static void connect_all(struct trainer *t)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id;

	exchange_id(t, &id);
	config.commName = "world";
	CHECK_NCCL(ncclCommInitRankConfig(&t->world_comm, t->world, id, t->rank, &config));
	config.commName = "tp";
	if (t->tp > 1)
		CHECK_NCCL(ncclCommSplit(t->world_comm, t->dp_rank, t->rank, &t->tp_comm, &config));
	config.commName = "dp";
	CHECK_NCCL(ncclCommSplit(t->world_comm, t->tp_rank, t->rank, &t->dp_comm, &config));
}

static void trainer_fini(struct trainer *t)
{
	CHECK_NCCL(ncclCommDestroy(t->dp_comm));
	if (t->tp_comm)
		CHECK_NCCL(ncclCommDestroy(t->tp_comm));
	CHECK_NCCL(ncclCommDestroy(t->world_comm));
	for (int b = 0; b < NUM_BUFFERS; b++) {
		CHECK_CU(cuMemFree(t->dev[b]));
		CHECK_CU(cuMemFreeHost(t->host[b]));
	}
	CHECK_CU(cuStreamDestroy(t->stream));
}

static const struct option options[] = {
	{ "steps", required_argument, NULL, 's' },
	{ "step-ms", required_argument, NULL, 'm' },
	{ "tp", required_argument, NULL, 't' },
	{ "elements", required_argument, NULL, 'e' },
	{ "log-every", required_argument, NULL, 'l' },
	{ "uid-file", required_argument, NULL, 'u' },
	{ "fault", required_argument, NULL, 'f' },
	{ "fault-rank", required_argument, NULL, 'r' },
	{ "fault-step", required_argument, NULL, 'k' },
	{ "fault-file", required_argument, NULL, 'F' },
	{ NULL, 0, NULL, 0 },
};

static void parse_fault(const char *kind)
{
	if (strcmp(kind, "block-in-data-loader") != 0 && strcmp(kind, "wrong-count") != 0 &&
	    strcmp(kind, "kill-self") != 0 && strcmp(kind, "wait-for-lock") != 0)
		die("unknown fault: %s", kind);
	arg_fault = kind;
}

static void parse_option(int c)
{
	static long *const numbers[256] = {
		['s'] = &arg_steps,      ['m'] = &arg_step_ms,   ['t'] = &arg_tp,
		['e'] = &arg_elements,   ['l'] = &arg_log_every, ['r'] = &arg_fault_rank,
		['k'] = &arg_fault_step,
	};

	if (c == 'u')
		arg_uid_file = optarg;
	else if (c == 'F')
		arg_fault_file = optarg;
	else if (c == 'f')
		parse_fault(optarg);
	else if (c <= 0 || c >= 256 || !numbers[c])
		exit(1); /* getopt has printed the error */
	else if (train_number(optarg, numbers[c]) < 0)
		die("option: not a number: %s", optarg);
}

int main(int argc, char **argv)
{
	struct trainer t = { 0 };
	long step;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		parse_option(c);
	if (optind < argc || arg_elements < 4)
		die("usage: train_loop [--steps N] [--step-ms MS] [--tp N] [--elements N] ...");
	setvbuf(stdout, NULL, _IOLBF, 0);
	trainer_init(&t);
	open_device(&t);
	connect_all(&t);
	for (step = 0; arg_steps == 0 || step < arg_steps; step++) {
		train_step(&t, step);
		if (arg_log_every > 0 && step % arg_log_every == 0)
			printf("rank %d step %ld loss=%g checksum=%016llx\n", t.rank, step,
			       (double)t.host[LOSS][0], (unsigned long long)t.checksum);
	}
	trainer_fini(&t);
	printf("done steps=%ld checksum=%016llx\n", step, (unsigned long long)t.checksum);
	return 0;
}
