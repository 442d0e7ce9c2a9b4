/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of an NCCL call for the caller, and for its stream. An ordinary NCCL program, which does
 * not know of any observer; tests/gpu/jobs runs it with the agent and without and compares.
 *
 * usage: call_cost [ELEMENTS [BATCHES]]      prints one line of JSON, times in nanoseconds a call
 *
 * A rank alone sends to itself, in a group, for which NCCL launches a kernel. Several ranks (RANK,
 * WORLD_SIZE, MASTER_ADDR, MASTER_PORT) call all_reduce; where they share a device, the time there
 * says nothing, and we omit it.
 *
 * On the host: batches of few calls on a stream that has nothing to do. On the device: many calls
 * that are all there before the first of them starts, between two events.
 */
#include <cuda.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lab/programs/train_store.h"

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int check_r_ = (int)(call);                                                        \
		if (check_r_ != 0) {                                                               \
			fprintf(stderr, "call_cost: %s: error %d\n", #call, check_r_);             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1e6f
/* Of a batch. A driver's queue holds a thousand, and each call brings up to ten. */
#define CALLS_HOST 32
#define CALLS_DEVICE 64
#define BATCHES_MAX 4096

struct rig {
	ncclComm_t comm;
	CUstream stream;
	CUevent from, to;
	CUdeviceptr in, out;
	size_t elements;
	int rank, world;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void call(const struct rig *rig)
{
	if (rig->world > 1) {
		CHECK(ncclAllReduce((const void *)rig->in, (void *)rig->out, rig->elements,
				    ncclFloat, ncclSum, rig->comm, rig->stream));
		return;
	}
	CHECK(ncclGroupStart());
	CHECK(ncclSend((const void *)rig->in, rig->elements, ncclFloat, 0, rig->comm, rig->stream));
	CHECK(ncclRecv((void *)rig->out, rig->elements, ncclFloat, 0, rig->comm, rig->stream));
	CHECK(ncclGroupEnd());
}

static void find_others(const struct rig *rig, ncclUniqueId *id)
{
	const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");

	if (rig->rank == 0)
		CHECK(ncclGetUniqueId(id));
	if (rig->world > 1)
		CHECK(rig->rank == 0 ? train_store_serve(host, port, rig->world, id, sizeof(*id))
				     : train_store_fetch(host, port, id, sizeof(*id)));
}

static int number_of(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

static double host_batch(const struct rig *rig)
{
	int64_t start_ns = now_ns(), end_ns;

	for (int i = 0; i < CALLS_HOST; i++)
		call(rig);
	end_ns = now_ns();
	CHECK(cuStreamSynchronize(rig->stream));
	return (double)(end_ns - start_ns) / CALLS_HOST;
}

static void wait_for_all(void *user)
{
	const bool *are_there = user;

	while (!__atomic_load_n(are_there, __ATOMIC_ACQUIRE))
		;
}

static double device_batch(const struct rig *rig)
{
	bool are_there = false;
	float ms;

	CHECK(cuLaunchHostFunc(rig->stream, wait_for_all, &are_there));
	CHECK(cuEventRecord(rig->from, rig->stream));
	for (int i = 0; i < CALLS_DEVICE; i++)
		call(rig);
	CHECK(cuEventRecord(rig->to, rig->stream));
	__atomic_store_n(&are_there, true, __ATOMIC_RELEASE);
	CHECK(cuEventSynchronize(rig->to));
	CHECK(cuEventElapsedTime(&ms, rig->from, rig->to));
	return (double)(ms * NS_PER_MS) / CALLS_DEVICE;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median_of(double (*batch)(const struct rig *rig), const struct rig *rig, int n)
{
	static double took[BATCHES_MAX];

	(void)batch(rig); /* modules are loaded, pages are there */
	for (int i = 0; i < n; i++)
		took[i] = batch(rig);
	qsort(took, (size_t)n, sizeof(*took), compare);
	return took[n / 2];
}

int main(int argc, char **argv)
{
	struct rig rig = { .elements = argc > 1 ? strtoul(argv[1], NULL, 10) : 256,
			   .rank = number_of("RANK", 0),
			   .world = number_of("WORLD_SIZE", 1) };
	int batches = argc > 2 ? atoi(argv[2]) : 200;
	double host_ns, device_ns = 0;
	ncclUniqueId id;
	CUcontext ctx;

	if (rig.elements == 0 || batches <= 0 || batches > BATCHES_MAX) {
		fprintf(stderr, "usage: call_cost [ELEMENTS [BATCHES (to %d)]]\n", BATCHES_MAX);
		return 2;
	}
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&ctx, 0));
	CHECK(cuCtxSetCurrent(ctx));
	CHECK(cuStreamCreate(&rig.stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&rig.from, CU_EVENT_DEFAULT));
	CHECK(cuEventCreate(&rig.to, CU_EVENT_DEFAULT));
	CHECK(cuMemAlloc(&rig.in, rig.elements * sizeof(float)));
	CHECK(cuMemAlloc(&rig.out, rig.elements * sizeof(float)));
	CHECK(cuMemsetD32Async(rig.in, 0x3f800000, rig.elements, rig.stream));
	find_others(&rig, &id);
	CHECK(ncclCommInitRank(&rig.comm, rig.world, id, rig.rank));
	host_ns = median_of(host_batch, &rig, batches);
	if (rig.world == 1)
		device_ns = median_of(device_batch, &rig, batches < 20 ? batches : 20);
	if (rig.rank == 0)
		printf("{\"elements\": %zu, \"host_ns\": %.0f, \"device_ns\": %.0f}\n",
		       rig.elements, host_ns, device_ns);
	CHECK(ncclCommDestroy(rig.comm));
	return 0;
}
