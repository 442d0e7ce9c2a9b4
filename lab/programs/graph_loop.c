/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that replays: it captures a step's communication into a CUDA graph once and launches it in
 * every step, as inference servers and compiled training steps do. It checks all results; all ranks
 * print the same checksum.
 *
 * An ordinary NCCL program that knows nothing about watchers. We build it three times: with graph
 * calls through the driver, a static and a shared CUDA runtime. Faults are options: --fault
 * skip-launch | wrong-capture | stuck-inside.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab/programs/train_store.h"

#define ELEMENTS 64
#define CHECK(call)                                                                                \
	do {                                                                                       \
		int check_r_ = (int)(call);                                                        \
		if (check_r_ != 0) {                                                               \
			fprintf(stderr, "graph_loop: %s: error %d\n", #call, check_r_);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#ifdef THROUGH_RUNTIME
#define begin_capture(s) cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)
#define end_capture cudaStreamEndCapture
#define instantiate cudaGraphInstantiate
#define launch_graph cudaGraphLaunch
#define destroy_exec cudaGraphExecDestroy
#define destroy_graph cudaGraphDestroy
#else
#define begin_capture(s) cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL)
#define end_capture cuStreamEndCapture
#define instantiate cuGraphInstantiate
#define launch_graph cuGraphLaunch
#define destroy_exec cuGraphExecDestroy
#define destroy_graph cuGraphDestroy
#endif

enum { SUM, MAX, SHARE, BUFFERS };

struct loop {
	int rank, world;
	ncclComm_t comm;
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUdeviceptr dev[BUFFERS];
	float *host[BUFFERS];
	uint64_t checksum;
	volatile long step; /* the graph's host function reads it */
};

static long arg_steps = 100, arg_step_ms, arg_fault_rank = -1, arg_fault_step;
static const char *arg_uid_file = "", *arg_fault = "";

static bool has_fault(const struct loop *l, const char *kind)
{
	return strcmp(arg_fault, kind) == 0 && l->rank == arg_fault_rank;
}

static void block(void)
{
	char byte;
	int fds[2];

	CHECK(pipe(fds));
	CHECK(read(fds[0], &byte, 1) != 1); /* no process ever writes */
}

/* Work between two collectives of the graph. */
static void work_inside(void *arg)
{
	const struct loop *l = arg;

	if (has_fault(l, "stuck-inside") && l->step == arg_fault_step)
		block();
}

static void *ptr(const struct loop *l, int b)
{
	return (void *)(uintptr_t)l->dev[b];
}

static size_t count_of(const struct loop *l, int b)
{
	return b == SHARE ? (size_t)ELEMENTS * (size_t)l->world : ELEMENTS;
}

static void issue_step(struct loop *l)
{
	size_t wrong = has_fault(l, "wrong-capture") ? ELEMENTS / 2 : ELEMENTS;

	for (int b = 0; b < SHARE; b++)
		CHECK(cuMemcpyHtoDAsync(l->dev[b], l->host[b], ELEMENTS * sizeof(float),
					l->stream));
	CHECK(ncclAllReduce(ptr(l, SUM), ptr(l, SUM), ELEMENTS, ncclFloat, ncclSum, l->comm,
			    l->stream));
	CHECK(cuLaunchHostFunc(l->stream, work_inside, l));
	CHECK(ncclGroupStart());
	CHECK(ncclAllReduce(ptr(l, MAX), ptr(l, MAX), wrong, ncclFloat, ncclMax, l->comm,
			    l->stream));
	CHECK(ncclAllGather(ptr(l, SUM), ptr(l, SHARE), ELEMENTS, ncclFloat, l->comm, l->stream));
	CHECK(ncclGroupEnd());
	for (int b = 0; b < BUFFERS; b++)
		CHECK(cuMemcpyDtoHAsync(l->host[b], l->dev[b], count_of(l, b) * sizeof(float),
					l->stream));
}

static void expect(const struct loop *l, int b, size_t i, long want)
{
	if ((long)l->host[b][i] == want)
		return;
	fprintf(stderr, "graph_loop: rank %d step %ld: buffer %d[%zu] is %g, should be %ld\n",
		l->rank, l->step, b, i, (double)l->host[b][i], want);
	exit(1);
}

static void fill(struct loop *l)
{
	for (long i = 0; i < ELEMENTS; i++) {
		l->host[SUM][i] = (float)((l->step + l->rank * 3 + i) % 11);
		l->host[MAX][i] = (float)((l->step * 7 + l->rank * 5 + i) % 13);
	}
}

static void check(struct loop *l)
{
	for (size_t i = 0; i < ELEMENTS; i += ELEMENTS - 1) {
		long sum = 0, max = 0;

		for (int r = 0; r < l->world; r++) {
			long value = (l->step * 7 + r * 5 + (long)i) % 13;

			sum += (l->step + r * 3 + (long)i) % 11;
			max = value > max ? value : max;
		}
		expect(l, SUM, i, sum);
		expect(l, MAX, i, max);
		expect(l, SHARE, (size_t)(l->world - 1) * ELEMENTS + i, sum);
	}
	for (size_t i = 0; i < ELEMENTS; i++)
		l->checksum = l->checksum * 1000003 + (uint64_t)l->host[SUM][i] * 17 +
			      (uint64_t)l->host[MAX][i] +
			      (uint64_t)l->host[SHARE][i * (size_t)l->world];
}

static void run_step(struct loop *l)
{
	struct timespec ts = { .tv_nsec = arg_step_ms * 1000000 };

	if (has_fault(l, "skip-launch") && l->step == arg_fault_step)
		block();
	fill(l);
	(void)nanosleep(&ts, NULL);
	CHECK(launch_graph(l->exec, l->stream));
	CHECK(cuStreamSynchronize(l->stream));
	check(l);
}

static void start(struct loop *l)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id;
	CUcontext ctx;
	CUdevice dev;

	l->rank = atoi(getenv("RANK"));
	l->world = atoi(getenv("WORLD_SIZE"));
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&dev, atoi(getenv("LOCAL_RANK"))));
	CHECK(cuDevicePrimaryCtxRetain(&ctx, dev));
	CHECK(cuCtxSetCurrent(ctx));
	CHECK(cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING));
	for (int b = 0; b < BUFFERS; b++) {
		CHECK(cuMemAlloc(&l->dev[b], count_of(l, b) * sizeof(float)));
		CHECK(cuMemAllocHost((void **)&l->host[b], count_of(l, b) * sizeof(float)));
		memset(l->host[b], 0, count_of(l, b) * sizeof(float));
	}
	if (l->rank == 0) {
		CHECK(ncclGetUniqueId(&id));
		CHECK(train_file_put(arg_uid_file, &id, sizeof(id)));
	} else {
		CHECK(train_file_get(arg_uid_file, &id, sizeof(id)));
	}
	config.commName = "world";
	CHECK(ncclCommInitRankConfig(&l->comm, l->world, id, l->rank, &config));
	CHECK(begin_capture(l->stream));
	issue_step(l);
	CHECK(end_capture(l->stream, &l->graph));
	CHECK(instantiate(&l->exec, l->graph, 0));
}

static void finish(struct loop *l)
{
	CHECK(destroy_exec(l->exec));
	CHECK(destroy_graph(l->graph));
	CHECK(ncclCommDestroy(l->comm));
	for (int b = 0; b < BUFFERS; b++) {
		CHECK(cuMemFree(l->dev[b]));
		CHECK(cuMemFreeHost(l->host[b]));
	}
	CHECK(cuStreamDestroy(l->stream));
}

static const struct option options[] = {
	{ "steps", required_argument, NULL, 's' },
	{ "step-ms", required_argument, NULL, 'm' },
	{ "uid-file", required_argument, NULL, 'u' },
	{ "fault", required_argument, NULL, 'f' },
	{ "fault-rank", required_argument, NULL, 'r' },
	{ "fault-step", required_argument, NULL, 'k' },
	{ NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
	struct loop l = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			arg_steps = atol(optarg);
			break;
		case 'm':
			arg_step_ms = atol(optarg);
			break;
		case 'u':
			arg_uid_file = optarg;
			break;
		case 'f':
			arg_fault = optarg;
			break;
		case 'r':
			arg_fault_rank = atol(optarg);
			break;
		case 'k':
			arg_fault_step = atol(optarg);
			break;
		default:
			return 1;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	start(&l);
	for (; arg_steps == 0 || l.step < arg_steps; l.step++) {
		run_step(&l);
		if (l.step % 10 == 0)
			printf("rank %d step %ld checksum=%016llx\n", l.rank, l.step,
			       (unsigned long long)l.checksum);
	}
	finish(&l);
	printf("done steps=%ld checksum=%016llx\n", l.step, (unsigned long long)l.checksum);
	return 0;
}
