/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process with four devices: the ways NCCL is used that a process with one device does not
 * know. Each mode prints what came out of it, says "ready", waits for its input and ends.
 */
#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 4
#define COUNT 32
#define BYTES (COUNT * 8)
#define ROUNDS 20

struct place {
	CUcontext context;
	CUstream stream;
	CUdeviceptr buffer;
	ncclComm_t comm, child;
};

static struct place places[RANKS];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("failed: %s\n", what);
	(void)fflush(stdout);
	_Exit(1);
}

static void *data(int rank)
{
	return (void *)(uintptr_t)places[rank].buffer;
}

static void use(int rank)
{
	must(cuCtxSetCurrent(places[rank].context) == CUDA_SUCCESS, "context");
}

static void set_up_devices(void)
{
	must(cuInit(0) == CUDA_SUCCESS, "cuInit");
	for (int i = 0; i < RANKS; i++) {
		struct place *p = &places[i];

		must(cuDevicePrimaryCtxRetain(&p->context, i) == CUDA_SUCCESS, "device");
		use(i);
		must(cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS, "stream");
		must(cuMemAlloc(&p->buffer, BYTES) == CUDA_SUCCESS, "memory");
	}
}

static void fill(int rank, int seed)
{
	unsigned char bytes[BYTES];

	/* Small in every type, also as floating point. */
	for (int i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)((i * 7 + rank + seed) % 48);
	use(rank);
	must(cuMemcpyHtoD(places[rank].buffer, bytes, BYTES) == CUDA_SUCCESS, "to the device");
}

static void fill_all(int seed)
{
	for (int i = 0; i < RANKS; i++)
		fill(i, seed);
}

/* A hash of the contents of all devices, when the streams are through. */
static void print_all(const char *what)
{
	uint64_t h = 14695981039346656037u;
	unsigned char bytes[BYTES];

	for (int i = 0; i < RANKS; i++) {
		use(i);
		must(cuStreamSynchronize(places[i].stream) == CUDA_SUCCESS, "synchronise");
		must(cuMemcpyDtoH(bytes, places[i].buffer, BYTES) == CUDA_SUCCESS, "to the host");
		for (int b = 0; b < BYTES; b++)
			h = (h ^ bytes[b]) * 1099511628211u;
	}
	printf("%s %016llx\n", what, (unsigned long long)h);
}

static ncclResult_t reduce(int rank, ncclComm_t comm, ncclDataType_t dtype, ncclRedOp_t op)
{
	use(rank);
	return ncclAllReduce(data(rank), data(rank), COUNT, dtype, op, comm, places[rank].stream);
}

static void open_group(void)
{
	must(ncclGroupStart() == ncclSuccess, "group start");
}

static ncclResult_t settled(ncclComm_t comm)
{
	ncclResult_t state = ncclInProgress;

	while (state == ncclInProgress) {
		must(ncclCommGetAsyncError(comm, &state) == ncclSuccess, "async error");
		(void)sched_yield();
	}
	return state;
}

static void close_group(void)
{
	ncclResult_t r = ncclGroupEnd();

	for (int i = 0; r == ncclInProgress && i < RANKS; i++)
		must(settled(places[i].comm) == ncclSuccess, "a communicator");
	must(r == ncclSuccess || r == ncclInProgress, "group end");
}

static void queue_all(void)
{
	for (int i = 0; i < RANKS; i++)
		must(reduce(i, places[i].comm, ncclFloat, ncclSum) == ncclSuccess, "all_reduce");
}

static void reduce_all(void)
{
	open_group();
	queue_all();
	close_group();
}

static void init_all(void)
{
	ncclComm_t comms[RANKS];

	must(ncclCommInitAll(comms, RANKS, NULL) == ncclSuccess, "init all");
	for (int i = 0; i < RANKS; i++)
		places[i].comm = comms[i];
}

static void mode_devices(void)
{
	init_all();
	fill_all(1);
	for (int i = 0; i < ROUNDS; i++)
		reduce_all();
	print_all("reduced");
}

/* ---- a thread for each device ---- */

static ncclUniqueId shared_id;

static void *run_rank(void *arg)
{
	int rank = (int)(intptr_t)arg;

	use(rank);
	must(ncclCommInitRank(&places[rank].comm, RANKS, shared_id, rank) == ncclSuccess, "init");
	for (int i = 0; i < ROUNDS; i++)
		must(reduce(rank, places[rank].comm, ncclFloat, ncclSum) == ncclSuccess,
		     "all_reduce");
	must(cuStreamSynchronize(places[rank].stream) == CUDA_SUCCESS, "synchronise");
	return NULL;
}

static void mode_threads(void)
{
	pthread_t threads[RANKS];

	must(ncclGetUniqueId(&shared_id) == ncclSuccess, "unique id");
	fill_all(2);
	for (intptr_t i = 0; i < RANKS; i++)
		must(pthread_create(&threads[i], NULL, run_rank, (void *)i) == 0, "thread");
	for (int i = 0; i < RANKS; i++)
		must(pthread_join(threads[i], NULL) == 0, "join");
	print_all("reduced");
}

/* ---- every type with every reduction ---- */

static void reduce_typed(ncclDataType_t dtype, const ncclRedOp_t *ops)
{
	char what[64];

	fill_all(3);
	open_group();
	for (int i = 0; i < RANKS; i++)
		must(reduce(i, places[i].comm, dtype, ops[i]) == ncclSuccess, "all_reduce");
	close_group();
	(void)snprintf(what, sizeof(what), "type %d op %d", (int)dtype,
		       ops[0] < ncclNumOps ? (int)ops[0] : -1);
	print_all(what);
}

static void reduce_by_own_operator(ncclDataType_t dtype)
{
	static unsigned char two[8] = { 2 };
	ncclRedOp_t ops[RANKS];

	for (int i = 0; i < RANKS; i++)
		must(ncclRedOpCreatePreMulSum(&ops[i], two, dtype, ncclScalarHostImmediate,
					      places[i].comm) == ncclSuccess,
		     "operator");
	reduce_typed(dtype, ops);
	for (int i = 0; i < RANKS; i++)
		must(ncclRedOpDestroy(ops[i], places[i].comm) == ncclSuccess, "operator");
}

static void broadcast_typed(ncclDataType_t dtype)
{
	fill_all(6);
	open_group();
	for (int i = 0; i < RANKS; i++) {
		use(i);
		must(ncclBroadcast(data(i), data(i), COUNT, dtype, 1, places[i].comm,
				   places[i].stream) == ncclSuccess,
		     "broadcast");
	}
	close_group();
	print_all("broadcast");
}

/* The simulated NCCL reduces no 8-bit floating point; it moves it. */
static void mode_types(void)
{
	init_all();
	for (int dtype = 0; dtype < ncclNumTypes; dtype++) {
		for (int op = 0; op < ncclNumOps && dtype < ncclFloat8e4m3; op++) {
			ncclRedOp_t ops[RANKS];

			for (int i = 0; i < RANKS; i++)
				ops[i] = (ncclRedOp_t)op;
			reduce_typed((ncclDataType_t)dtype, ops);
		}
		if (dtype < ncclFloat8e4m3)
			reduce_by_own_operator((ncclDataType_t)dtype);
		broadcast_typed((ncclDataType_t)dtype);
	}
}

/* ---- groups that are no plain ones ---- */

static void split_all(void)
{
	for (int i = 0; i < RANKS; i++) {
		ncclResult_t r = ncclCommSplit(places[i].comm, i / 2, i, &places[i].child, NULL);

		must(r == ncclSuccess || r == ncclInProgress, "split");
	}
}

static void reduce_children(void)
{
	open_group();
	for (int i = 0; i < RANKS; i++)
		must(reduce(i, places[i].child, ncclFloat, ncclSum) == ncclSuccess, "all_reduce");
	close_group();
}

static void use_children(void)
{
	int ranks = 0;

	open_group();
	split_all();
	close_group();
	must(ncclCommCount(places[3].child, &ranks) == ncclSuccess, "count");
	printf("children of %d\n", ranks);
	reduce_children();
	print_all("by the children");
}

static void mode_groups(void)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

	init_all();
	fill_all(4);
	open_group();
	queue_all();
	printf("refused %d\n", ncclBroadcast(data(0), data(0), 1, ncclFloat, RANKS + 5,
					     places[0].comm, places[0].stream));
	printf("failed %d\n", ncclGroupEnd());
	open_group();
	queue_all();
	printf("simulated %d\n", ncclGroupSimulateEnd(&info));
	print_all("nothing was reduced");
	open_group();
	open_group();
	queue_all();
	printf("inner end %d\n", ncclGroupEnd());
	queue_all();
	close_group();
	print_all("nested");
	open_group();
	queue_all();
	printf("simulated into nothing %d\n", ncclGroupSimulateEnd(NULL));
	print_all("reduced");
	use_children();
}

/* ---- communicators that are not made when the call returns ---- */

static void mode_non_blocking(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

	config.blocking = 0;
	must(ncclGetUniqueId(&shared_id) == ncclSuccess, "unique id");
	fill_all(5);
	open_group();
	for (int i = 0; i < RANKS; i++) {
		/* A variable that is gone when the group ends. */
		ncclComm_t comm = NULL;
		ncclResult_t r;

		use(i);
		r = ncclCommInitRankConfig(&comm, RANKS, shared_id, i, &config);
		must(r == ncclSuccess || r == ncclInProgress, "init");
		places[i].comm = comm;
	}
	close_group();
	for (int i = 0; i < ROUNDS; i++)
		reduce_all();
	print_all("reduced");
	use_children();
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "devices", mode_devices }, { "threads", mode_threads },           { "types", mode_types },
	{ "groups", mode_groups },   { "non-blocking", mode_non_blocking },
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		set_up_devices();
		modes[i].run();
		puts("ready");
		(void)fflush(stdout);
		(void)getchar();
		return 0;
	}
	fprintf(stderr, "usage: agent_devices MODE\n");
	return 2;
}
