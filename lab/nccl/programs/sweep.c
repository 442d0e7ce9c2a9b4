/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective with every data type and operator; compares the result with the expected one bit
 * for bit. An ordinary NCCL program: it runs the same on a GPU. Prints a line for each kind of
 * call, with a hash of all results, for the comparison of two runs; the exit status is 0 if all
 * results are right.
 *
 * Numbers are so small that each type can represent them and their sums, in any order. Only
 * averages over a number of ranks that is no power of two round. NCCL multiplies each term by 1/n
 * in the data type (hostToDevRedOp() of src/enqueue.cc, 2.29) and then adds, in an order that
 * depends on the size. There, only one rank has a nonzero number, so that only one product rounds.
 */
#include <cuda.h>
#include <nccl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/nccl/programs/element.h"
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
			die("%s: %s (%s)", #call, ncclGetErrorString(nccl_r_),                     \
			    ncclGetLastError(NULL));                                               \
	} while (0)

/* The content of bytes that no call may write. */
#define UNTOUCHED 0x5a
#define RANKS_MAX 16

enum reduction { SUM, PROD, MIN, MAX, AVG, SCALED_SUM, REDUCTIONS };

static const char *const reduction_names[REDUCTIONS] = { "sum", "prod", "min",
							 "max", "avg",  "scaled_sum" };

static int rank, world;
static size_t most_elements; /* of one rank's part */
static CUstream stream;
static ncclComm_t comm;
static CUdeviceptr dev_in, dev_out;
static char *host_in, *host_out, *expected;
static uint64_t hash;
static unsigned long failures;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sweep: rank %d: ", rank);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* ---- data ---- */

static bool is_power_of_two(int n)
{
	return (n & (n - 1)) == 0;
}

/* Rank @r's number at @i: of both signs if the type has them, never 0 for products. */
static double number(int r, size_t i, const struct element_type *t, enum reduction op)
{
	unsigned int mix = (unsigned int)(i * 2654435761u) ^ (unsigned int)(r * 40503 + 7);
	unsigned int n = (mix >> 8) % (world > 4 ? 2 : 3);
	bool is_negative = t->has_sign && (mix >> 20 & 1);

	if (op == PROD)
		n = world > 4 ? 1 : 1 + n % 2;
	if (op == AVG && t->is_float && !is_power_of_two(world))
		n = i % (size_t)world == (size_t)r;
	return is_negative && n ? -(double)n : (double)n; /* no -0: minima may choose either */
}

static double combine(double a, double b, enum reduction op)
{
	switch (op) {
	case PROD:
		return a * b;
	case MIN:
		return a < b ? a : b;
	case MAX:
		return a > b ? a : b;
	default:
		return a + b;
	}
}

/* The expected result at @i over all ranks. */
static double result(size_t i, const struct element_type *t, enum reduction op)
{
	double acc = number(0, i, t, op);

	for (int r = 1; r < world; r++)
		acc = combine(acc, number(r, i, t, op), op);
	if (op == SCALED_SUM)
		acc *= 2;
	if (op == AVG)
		acc = t->is_float ? acc / world : (double)((int)acc / world);
	return acc + 0.0; /* no -0 */
}

/* ---- a call, from filled buffers to comparison ---- */

static void begin(size_t in_bytes, size_t out_bytes)
{
	memset(host_out, UNTOUCHED, out_bytes);
	memset(expected, UNTOUCHED, out_bytes);
	if (in_bytes)
		CHECK_CU(cuMemcpyHtoD(dev_in, host_in, in_bytes));
	CHECK_CU(cuMemcpyHtoD(dev_out, host_out, out_bytes));
}

static void finish(const char *what, size_t bytes)
{
	CHECK_CU(cuStreamSynchronize(stream));
	CHECK_CU(cuMemcpyDtoH(host_out, dev_out, bytes));
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)host_out[i]) * 0x100000001b3u;
	if (memcmp(host_out, expected, bytes) == 0)
		return;
	for (size_t i = 0; i < bytes; i++) {
		if (host_out[i] != expected[i]) {
			fprintf(stderr, "wrong: rank %d %s: byte %zu of %zu is %02x, not %02x\n",
				rank, what, i, bytes, (unsigned char)host_out[i],
				(unsigned char)expected[i]);
			break;
		}
	}
	failures++;
}

static void say(const char *what)
{
	printf("rank %d %s %016llx\n", rank, what, (unsigned long long)hash);
}

static ncclRedOp_t operator_of(const struct element_type *t, enum reduction op)
{
	char scalar[8] = { 0 };
	ncclRedOp_t made;

	switch (op) {
	case SUM:
		return ncclSum;
	case PROD:
		return ncclProd;
	case MIN:
		return ncclMin;
	case MAX:
		return ncclMax;
	case AVG:
		return ncclAvg;
	default:
		element_put(scalar, 0, t, 2);
		CHECK_NCCL(ncclRedOpCreatePreMulSum(&made, scalar, t->dtype,
						    ncclScalarHostImmediate, comm));
		return made;
	}
}

static void *in(void)
{
	return (void *)(uintptr_t)dev_in;
}

static void *out(void)
{
	return (void *)(uintptr_t)dev_out;
}

/* ---- reductions ---- */

static void all_reduce(const struct element_type *t, enum reduction op, ncclRedOp_t red, size_t n)
{
	for (size_t i = 0; i < n; i++)
		element_put(host_in, i, t, number(rank, i, t, op));
	begin(n * t->size, n * t->size);
	for (size_t i = 0; i < n; i++)
		element_put(expected, i, t, result(i, t, op));
	CHECK_NCCL(ncclAllReduce(in(), out(), n, t->dtype, red, comm, stream));
	finish("all_reduce", n * t->size);

	CHECK_CU(cuMemcpyHtoD(dev_out, host_in, n * t->size));
	CHECK_NCCL(ncclAllReduce(out(), out(), n, t->dtype, red, comm, stream));
	finish("all_reduce in place", n * t->size);
}

static void reduce(const struct element_type *t, enum reduction op, ncclRedOp_t red, size_t n)
{
	int root = (int)(n % (size_t)world);

	for (size_t i = 0; i < n; i++)
		element_put(host_in, i, t, number(rank, i, t, op));
	begin(n * t->size, n * t->size);
	for (size_t i = 0; i < n && rank == root; i++)
		element_put(expected, i, t, result(i, t, op));
	CHECK_NCCL(ncclReduce(in(), out(), n, t->dtype, red, root, comm, stream));
	finish("reduce", n * t->size);
}

static void reduce_scatter(const struct element_type *t, enum reduction op, ncclRedOp_t red,
			   size_t n)
{
	size_t all = n * (size_t)world;

	for (size_t i = 0; i < all; i++)
		element_put(host_in, i, t, number(rank, i, t, op));
	begin(all * t->size, n * t->size);
	for (size_t i = 0; i < n; i++)
		element_put(expected, i, t, result((size_t)rank * n + i, t, op));
	CHECK_NCCL(ncclReduceScatter(in(), out(), n, t->dtype, red, comm, stream));
	finish("reduce_scatter", n * t->size);
}

static void reductions(const size_t *sizes)
{
	static void (*const calls[])(const struct element_type *, enum reduction, ncclRedOp_t,
				     size_t) = { all_reduce, reduce, reduce_scatter };
	static const char *const names[] = { "all_reduce", "reduce", "reduce_scatter" };
	char what[64];

	for (size_t c = 0; c < 3; c++) {
		for (size_t k = 0; k < ELEMENT_TYPES; k++) {
			for (enum reduction op = 0; op < REDUCTIONS; op++) {
				const struct element_type *t = &element_types[k];
				ncclRedOp_t red = operator_of(t, op);

				for (const size_t *n = sizes; *n; n++)
					calls[c](t, op, red, *n);
				if (op == SCALED_SUM)
					CHECK_NCCL(ncclRedOpDestroy(red, comm));
				snprintf(what, sizeof(what), "%s %s %s", names[c], t->name,
					 reduction_names[op]);
				say(what);
			}
		}
	}
}

/* ---- calls that only copy ---- */

static void put_part(char *buf, size_t at, int r, const struct element_type *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		element_put(buf, at + i, t, number(r, i + at * 3, t, SUM));
}

static void all_gather(const struct element_type *t, size_t n)
{
	size_t all = n * (size_t)world;

	for (size_t i = 0; i < n; i++)
		element_put(host_in, i, t, number(rank, i, t, SUM));
	begin(n * t->size, all * t->size);
	for (int r = 0; r < world; r++) {
		for (size_t i = 0; i < n; i++)
			element_put(expected, (size_t)r * n + i, t, number(r, i, t, SUM));
	}
	CHECK_NCCL(ncclAllGather(in(), out(), n, t->dtype, comm, stream));
	finish("all_gather", all * t->size);
}

static void broadcast(const struct element_type *t, size_t n)
{
	int root = (int)((n + 1) % (size_t)world);

	put_part(host_in, 0, rank, t, n);
	begin(n * t->size, n * t->size);
	put_part(expected, 0, root, t, n);
	CHECK_NCCL(ncclBroadcast(in(), out(), n, t->dtype, root, comm, stream));
	finish("broadcast", n * t->size);

	CHECK_CU(cuMemcpyHtoD(dev_out, host_in, n * t->size));
	CHECK_NCCL(ncclBcast(out(), n, t->dtype, root, comm, stream));
	finish("broadcast in place", n * t->size);
}

/*
 * Broadcasts of all roots in one group, of different lengths: NCCL's all_gather with
 * variable sizes.
 */
static void broadcasts(const struct element_type *t, size_t n)
{
	size_t at = 0;

	put_part(host_in, 0, rank, t, n);
	begin(n * t->size, n * (size_t)world * t->size);
	CHECK_NCCL(ncclGroupStart());
	for (int r = 0; r < world; r++) {
		size_t part = 1 + (n - 1) * (size_t)(r + 1) / (size_t)world;

		for (size_t i = 0; i < part; i++)
			element_put(expected, at + i, t, number(r, i, t, SUM));
		CHECK_NCCL(ncclBroadcast(in(), (char *)out() + at * t->size, part, t->dtype, r,
					 comm, stream));
		at += part;
	}
	CHECK_NCCL(ncclGroupEnd());
	finish("broadcasts in a group", n * (size_t)world * t->size);
}

static void neighbours(const struct element_type *t, size_t n)
{
	int next = (rank + 1) % world;
	int prev = (rank + world - 1) % world;

	put_part(host_in, 0, rank, t, n);
	begin(n * t->size, n * t->size);
	put_part(expected, 0, prev, t, n);
	CHECK_NCCL(ncclGroupStart());
	CHECK_NCCL(ncclSend(in(), n, t->dtype, next, comm, stream));
	CHECK_NCCL(ncclRecv(out(), n, t->dtype, prev, comm, stream));
	CHECK_NCCL(ncclGroupEnd());
	finish("send and receive", n * t->size);
}

/* Each rank sends to each one, itself included, an amount that depends on both. */
static void all_to_all_v(const struct element_type *t, size_t n)
{
	size_t from = 0, to = 0;

	for (int r = 0; r < world; r++) {
		size_t part = 1 + (size_t)(rank + r) * (n - 1) / (size_t)(2 * world);

		put_part(host_in, from, rank, t, part);
		from += part;
	}
	begin(from * t->size, n * (size_t)world * t->size);
	from = 0;
	CHECK_NCCL(ncclGroupStart());
	for (int r = 0; r < world; r++) {
		size_t part = 1 + (size_t)(rank + r) * (n - 1) / (size_t)(2 * world);
		size_t there = 0;

		for (int k = 0; k < rank; k++)
			there += 1 + (size_t)(r + k) * (n - 1) / (size_t)(2 * world);
		for (size_t i = 0; i < part; i++)
			element_put(expected, to + i, t, number(r, i + there * 3, t, SUM));
		CHECK_NCCL(
			ncclSend((char *)in() + from * t->size, part, t->dtype, r, comm, stream));
		CHECK_NCCL(ncclRecv((char *)out() + to * t->size, part, t->dtype, r, comm, stream));
		from += part;
		to += part;
	}
	CHECK_NCCL(ncclGroupEnd());
	finish("all to all, uneven", n * (size_t)world * t->size);
}

static void all_to_all(const struct element_type *t, size_t n)
{
	size_t all = n * (size_t)world;

	for (int r = 0; r < world; r++)
		put_part(host_in, (size_t)r * n, rank, t, n);
	begin(all * t->size, all * t->size);
	for (int r = 0; r < world; r++) {
		for (size_t i = 0; i < n; i++)
			element_put(expected, (size_t)r * n + i, t,
				    number(r, i + (size_t)rank * n * 3, t, SUM));
	}
	CHECK_NCCL(ncclAlltoAll(in(), out(), n, t->dtype, comm, stream));
	finish("all_to_all", all * t->size);
}

static void gather_scatter(const struct element_type *t, size_t n)
{
	size_t all = n * (size_t)world;
	int root = world - 1;

	put_part(host_in, 0, rank, t, n);
	begin(n * t->size, all * t->size);
	for (int r = 0; r < world && rank == root; r++) {
		for (size_t i = 0; i < n; i++)
			element_put(expected, (size_t)r * n + i, t, number(r, i, t, SUM));
	}
	CHECK_NCCL(ncclGather(in(), out(), n, t->dtype, root, comm, stream));
	finish("gather", all * t->size);

	put_part(host_in, 0, rank, t, all);
	begin(all * t->size, n * t->size);
	for (size_t i = 0; i < n; i++)
		element_put(expected, i, t, number(root, (size_t)rank * n + i, t, SUM));
	CHECK_NCCL(ncclScatter(in(), out(), n, t->dtype, root, comm, stream));
	finish("scatter", n * t->size);
}

static void moves(const size_t *sizes)
{
	static void (*const calls[])(const struct element_type *,
				     size_t) = { all_gather,    broadcast,  broadcasts,
						 neighbours,    all_to_all, all_to_all_v,
						 gather_scatter };
	static const char *const names[] = { "all_gather",    "broadcast",  "broadcasts",
					     "send_recv",     "all_to_all", "all_to_all_v",
					     "gather_scatter" };
	char what[64];

	for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
		for (size_t k = 0; k < ELEMENT_TYPES; k++) {
			for (const size_t *n = sizes; *n; n++)
				calls[c](&element_types[k], *n);
			snprintf(what, sizeof(what), "%s %s", names[c], element_types[k].name);
			say(what);
		}
	}
}

/* ---- communicators ---- */

/* The same calls on a subset of the ranks, then on each rank alone. */
static void splits(const size_t *sizes)
{
	const struct element_type *t = &element_types[7];
	int whole = world, me = rank;
	ncclComm_t parent = comm;

	for (int parts = 2; parts <= whole; parts = parts < whole ? whole : parts + 1) {
		CHECK_NCCL(ncclCommSplit(parent, me % parts, me, &comm, NULL));
		CHECK_NCCL(ncclCommCount(comm, &world));
		CHECK_NCCL(ncclCommUserRank(comm, &rank));
		for (enum reduction op = 0; op < REDUCTIONS; op++) {
			ncclRedOp_t red = operator_of(t, op);

			for (const size_t *n = sizes; *n; n++)
				all_reduce(t, op, red, *n);
			if (op == SCALED_SUM)
				CHECK_NCCL(ncclRedOpDestroy(red, comm));
		}
		CHECK_NCCL(ncclCommFinalize(comm));
		CHECK_NCCL(ncclCommDestroy(comm));
		world = whole;
		rank = me;
	}
	comm = parent;
	say("split");
}

/* Rank 0 does not take part; the others abort. */
static void abort_one(void)
{
	ncclComm_t child;

	CHECK_NCCL(ncclCommSplit(comm, 0, rank, &child, NULL));
	if (rank != 0)
		CHECK_NCCL(ncclAllReduce(in(), out(), most_elements, ncclInt8, ncclSum, child,
					 stream));
	CHECK_NCCL(ncclCommAbort(child));
	CHECK_CU(cuStreamSynchronize(stream));
	say("abort");
}

/* ---- non-blocking communicators ---- */

static void until_done(ncclComm_t c)
{
	ncclResult_t state = ncclInProgress;

	while (state == ncclInProgress) {
		const struct timespec nap = { .tv_nsec = 1000000 };

		CHECK_NCCL(ncclCommGetAsyncError(c, &state));
		if (state == ncclInProgress)
			nanosleep(&nap, NULL);
	}
	if (state != ncclSuccess)
		die("a call that was in progress ended with %s", ncclGetErrorString(state));
}

static void must_have_begun(const char *what, ncclResult_t r)
{
	if (r != ncclSuccess && r != ncclInProgress)
		die("%s: %s (%s)", what, ncclGetErrorString(r), ncclGetLastError(NULL));
}

/* all_reduce() waits for its stream, which is still empty while a call is in progress. */
static void use_non_blocking(const size_t *sizes)
{
	const struct element_type *t = &element_types[7];

	for (const size_t *n = sizes; *n; n++) {
		for (size_t i = 0; i < *n; i++)
			element_put(host_in, i, t, number(rank, i, t, SUM));
		begin(*n * t->size, *n * t->size);
		for (size_t i = 0; i < *n; i++)
			element_put(expected, i, t, result(i, t, SUM));
		must_have_begun("all_reduce",
				ncclAllReduce(in(), out(), *n, t->dtype, ncclSum, comm, stream));
		until_done(comm);
		finish("all_reduce, not blocking", *n * t->size);
	}
}

/* Tests one from a new id, which rank 0 distributes, and one from a split. */
static void non_blocking(const size_t *sizes)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t parent = comm;
	ncclUniqueId id;

	config.blocking = 0;
	if (rank == 0) {
		CHECK_NCCL(ncclGetUniqueId(&id));
		CHECK_CU(cuMemcpyHtoD(dev_in, &id, sizeof(id)));
	}
	CHECK_NCCL(ncclBroadcast(in(), out(), sizeof(id), ncclChar, 0, parent, stream));
	CHECK_CU(cuStreamSynchronize(stream));
	CHECK_CU(cuMemcpyDtoH(&id, dev_out, sizeof(id)));
	for (int way = 0; way < 2; way++) {
		must_have_begun("init",
				way == 0 ? ncclCommInitRankConfig(&comm, world, id, rank, &config)
					 : ncclCommSplit(parent, 0, rank, &comm, &config));
		if (way == 0)
			until_done(comm);
		while (way == 1 &&
		       !comm) /* a split sets the handle when the parent's call is done */
			until_done(parent);
		until_done(comm);
		use_non_blocking(sizes);
		must_have_begun("finalize", ncclCommFinalize(comm));
		until_done(comm);
		CHECK_NCCL(ncclCommDestroy(comm));
	}
	comm = parent;
	say("non_blocking");
}

/* Removes the last rank: first without calls in flight, then while the others wait for it. */
static void shrink(const size_t *sizes)
{
	const struct element_type *t = &element_types[7];
	int whole = world, gone = world - 1;
	ncclComm_t parent = comm, waiting;

	for (int way = 0; way < 2; way++) {
		CHECK_NCCL(ncclCommSplit(parent, 0, rank, &waiting, NULL));
		if (rank != gone) {
			if (way == 1)
				CHECK_NCCL(ncclAllReduce(in(), out(), most_elements, ncclInt8,
							 ncclSum, waiting, stream));
			CHECK_NCCL(
				ncclCommShrink(waiting, &gone, 1, &comm, NULL,
					       way == 0 ? NCCL_SHRINK_DEFAULT : NCCL_SHRINK_ABORT));
			CHECK_NCCL(ncclCommCount(comm, &world));
			if (world != whole - 1)
				die("%d ranks are left of %d", world, whole);
			for (const size_t *n = sizes; *n; n++)
				all_reduce(t, SUM, ncclSum, *n);
			CHECK_NCCL(ncclCommDestroy(comm));
			world = whole;
		}
		CHECK_NCCL(ncclCommAbort(waiting));
	}
	comm = parent;
	say("shrink");
}

/* ---- graphs ---- */

#define REPLAYS 3

/* An all_reduce, then a send and a receive of its result, once per launch of the graph. */
static void graph(const struct element_type *t, size_t n)
{
	int next = (rank + 1) % world, prev = (rank + world - 1) % world;
	size_t bytes = n * t->size;
	CUgraphExec exec;
	CUgraph made;

	CHECK_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	CHECK_NCCL(ncclAllReduce(in(), out(), n, t->dtype, ncclSum, comm, stream));
	CHECK_NCCL(ncclGroupStart());
	CHECK_NCCL(ncclSend(in(), n, t->dtype, next, comm, stream));
	CHECK_NCCL(ncclRecv((char *)out() + bytes, n, t->dtype, prev, comm, stream));
	CHECK_NCCL(ncclGroupEnd());
	CHECK_CU(cuStreamEndCapture(stream, &made));
	CHECK_CU(cuGraphInstantiate(&exec, made, 0));
	for (int i = 0; i < REPLAYS; i++) {
		for (size_t k = 0; k < n; k++)
			element_put(host_in, k, t, number(rank, k + (size_t)i, t, SUM));
		begin(bytes, 2 * bytes);
		for (size_t k = 0; k < n; k++) {
			element_put(expected, k, t, result(k + (size_t)i, t, SUM));
			element_put(expected, n + k, t, number(prev, k + (size_t)i, t, SUM));
		}
		CHECK_CU(cuGraphLaunch(exec, stream));
		finish("graph", 2 * bytes);
		all_reduce(t, SUM, ncclSum, n); /* the same connections, outside of the graph */
	}
	CHECK_CU(cuGraphExecDestroy(exec));
	CHECK_CU(cuGraphDestroy(made));
}

static void graphs(const size_t *sizes)
{
	for (size_t k = 0; k < ELEMENT_TYPES; k += 3) {
		for (const size_t *n = sizes; *n; n++)
			graph(&element_types[k], *n);
	}
	say("graph");
}

static long number_of(const char *name)
{
	const char *text = getenv(name);

	if (!text)
		die("%s is not set", name);
	return strtol(text, NULL, 10);
}

static void open_all(size_t bytes)
{
	const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	ncclUniqueId id;
	CUcontext ctx;
	int devices;

	if (!host || !port)
		die("MASTER_ADDR or MASTER_PORT is not set");
	if (rank == 0)
		CHECK_NCCL(ncclGetUniqueId(&id));
	if ((rank == 0 ? train_store_serve(host, port, world, &id, sizeof(id))
		       : train_store_fetch(host, port, &id, sizeof(id))) < 0)
		die("the ranks do not find each other at %s:%s", host, port);
	CHECK_CU(cuInit(0));
	CHECK_CU(cuDeviceGetCount(&devices));
	CHECK_CU(cuDevicePrimaryCtxRetain(&ctx, rank % devices));
	CHECK_CU(cuCtxSetCurrent(ctx));
	CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK_CU(cuMemAlloc(&dev_in, bytes));
	CHECK_CU(cuMemAlloc(&dev_out, bytes));
	host_in = malloc(bytes);
	host_out = malloc(bytes);
	expected = malloc(bytes);
	if (!host_in || !host_out || !expected)
		die("no memory");
	CHECK_NCCL(ncclCommInitRank(&comm, world, id, rank));
}

int main(int argc, char **argv)
{
	size_t sizes[16] = { 0 };
	int version;

	/* Ranks that share a pipe must not split each other's lines. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	rank = (int)number_of("RANK");
	world = (int)number_of("WORLD_SIZE");
	if (argc < 2 || argc > 16 || world < 2 || world > RANKS_MAX)
		die("usage: sweep ELEMENTS..., by 2 to %d ranks", RANKS_MAX);
	for (int i = 1; i < argc; i++) {
		sizes[i - 1] = strtoul(argv[i], NULL, 10);
		if (sizes[i - 1] > most_elements)
			most_elements = sizes[i - 1];
	}
	open_all(most_elements * (size_t)world * 8 + sizeof(ncclUniqueId));
	CHECK_NCCL(ncclGetVersion(&version));
	printf("rank %d NCCL %d\n", rank, version);
	reductions(sizes);
	moves(sizes);
	graphs(sizes);
	splits(sizes);
	abort_one();
	non_blocking(sizes);
	shrink(sizes);
	CHECK_NCCL(ncclCommFinalize(comm));
	CHECK_NCCL(ncclCommDestroy(comm));
	say("end");
	if (failures)
		fprintf(stderr, "sweep: rank %d: %lu calls were wrong\n", rank, failures);
	return failures ? 1 : 0;
}
