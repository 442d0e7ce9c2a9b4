/* SPDX-License-Identifier: Apache-2.0 */
/* The device of a rank, its communicators, and its calls, as in any NCCL program. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/programs/scenario_rank.h"
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

#define MAX_IDS 256u
#define LARGEST_ELEMENT 8u

void die(const char *fmt, ...)
{
	const char *rank = getenv("RANK");
	va_list ap;

	fprintf(stderr, "scenario_rank: rank %s: ", rank ? rank : "?");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* ---- device ---- */

/* Elements of the largest call, faults included. */
static uint64_t largest_count(const struct suite_scenario *s)
{
	uint64_t most = 1;

	for (uint32_t p = 0; p < s->n_programs; p++)
		for (uint32_t i = 0; i < s->programs[p].n_insns; i++) {
			const struct suite_insn *insn = &s->programs[p].insns[i];

			if (insn->kind == SUITE_CALL && insn->call.count > most)
				most = insn->call.count;
		}
	for (uint32_t i = 0; i < s->n_faults; i++)
		if (s->faults[i].action == SUITE_CHANGE &&
		    s->faults[i].field == SUITE_FIELD_COUNT && s->faults[i].value > most)
			most = s->faults[i].value;
	return most;
}

static void open_device(struct rank *r)
{
	size_t bytes = largest_count(r->s) * LARGEST_ELEMENT * r->s->n_ranks;
	const char *local = getenv("LOCAL_RANK");
	CUcontext context;
	CUdevice device;
	int count;

	CHECK_CU(cuInit(0));
	CHECK_CU(cuDeviceGetCount(&count));
	CHECK_CU(cuDeviceGet(&device, (int)strtol(local ? local : "0", NULL, 10) % count));
	CHECK_CU(cuDevicePrimaryCtxRetain(&context, device));
	CHECK_CU(cuCtxSetCurrent(context));
	for (unsigned i = 0; i < N_STREAMS; i++)
		CHECK_CU(cuStreamCreate(&r->streams[i], CU_STREAM_NON_BLOCKING));
	CHECK_CU(cuMemAlloc(&r->from, bytes));
	CHECK_CU(cuMemAlloc(&r->to, bytes));
}

static CUstream stream_of(const struct rank *r, uint32_t stream)
{
	return r->streams[stream % N_STREAMS];
}

static void be_occupied(void *user)
{
	int64_t ns = *(int64_t *)user;

	free(user);
	rank_sleep(ns);
}

/* For a graph, which needs the occupation again at each launch. */
static void be_occupied_again(void *user)
{
	rank_sleep(*(const int64_t *)user);
}

void rank_occupy(struct rank *r, uint32_t stream, int64_t ns)
{
	int64_t *copy = malloc(sizeof(*copy));

	if (!copy)
		die("out of memory");
	*copy = ns;
	CHECK_CU(cuLaunchHostFunc(stream_of(r, stream),
				  r->is_capturing ? be_occupied_again : be_occupied, copy));
}

void rank_capture(struct rank *r, uint32_t stream)
{
	r->is_capturing = true;
	CHECK_CU(cuStreamBeginCapture(stream_of(r, stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

void rank_end_capture(struct rank *r, uint32_t stream, CUgraphExec *ret)
{
	CUgraph graph;

	r->is_capturing = false;
	CHECK_CU(cuStreamEndCapture(stream_of(r, stream), &graph));
	CHECK_CU(cuGraphInstantiate(ret, graph, 0));
	rank_replay(r, stream, *ret);
}

void rank_replay(const struct rank *r, uint32_t stream, CUgraphExec graph)
{
	CHECK_CU(cuGraphLaunch(graph, stream_of(r, stream)));
}

void rank_sync(struct rank *r, uint32_t stream)
{
	for (unsigned i = 0; i < N_STREAMS; i++)
		if (stream == SUITE_NONE || stream % N_STREAMS == i)
			CHECK_CU(cuStreamSynchronize(r->streams[i]));
}

/* ---- communicators ---- */

/* Index of the family's first id; comms from a split need none. */
static uint32_t first_id(const struct suite_scenario *s, uint32_t family)
{
	uint32_t n = 0;

	for (uint32_t f = 0; f < family; f++)
		n += s->families[f].made == SUITE_BY_SPLIT ? 0 : cw_suite_family_comms(s, f);
	return n;
}

static ncclUniqueId ids[MAX_IDS];

static void exchange_ids(const struct rank *r)
{
	uint32_t n = first_id(r->s, r->s->n_families);
	const char *addr = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	int e;

	if (!addr || !port || n > MAX_IDS)
		die("no MASTER_ADDR or MASTER_PORT, or %u communicators", n);
	if (r->index == 0) {
		for (uint32_t i = 0; i < n; i++)
			CHECK_NCCL(ncclGetUniqueId(&ids[i]));
		e = train_store_serve(addr, port, (int)r->s->n_ranks, ids, n * sizeof(*ids));
	} else {
		e = train_store_fetch(addr, port, ids, n * sizeof(*ids));
	}
	if (e < 0)
		die("cannot exchange unique ids: %s", strerror(-e));
}

/* "world", "tp_3" */
static void name_comm(const struct rank *r, uint32_t family, char *buf, size_t len)
{
	const struct suite_family *f = &r->s->families[family];

	if (f->is_partition)
		(void)snprintf(buf, len, "%s_%u", f->name, r->members[family].slot.comm);
	else
		(void)snprintf(buf, len, "%s", f->name);
}

static void init_comm(struct rank *r, uint32_t family)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct member *m = &r->members[family];
	char name[64];

	if (!m->is_member || m->is_ready)
		return;
	name_comm(r, family, name, sizeof(name));
	config.commName = name;
	CHECK_NCCL(ncclCommInitRankConfig(&m->comm, (int)m->slot.nranks,
					  ids[first_id(r->s, family) + m->slot.comm],
					  (int)m->slot.place, &config));
	m->is_ready = true;
}

static void split_comm(struct rank *r, const struct suite_call *call)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct member *m = &r->members[call->family];
	struct member *child = call->child < r->s->n_families ? &r->members[call->child] : NULL;
	ncclComm_t made = NULL;
	char name[64] = "";

	if (child && child->is_member)
		name_comm(r, call->child, name, sizeof(name));
	config.commName = name;
	CHECK_NCCL(ncclCommSplit(
		m->comm, child && child->is_member ? (int)child->slot.comm : NCCL_SPLIT_NOCOLOR,
		child ? (int)child->slot.place : 0, &made, &config));
	if (!made)
		return;
	child->comm = made;
	child->is_ready = true;
}

void rank_connect(struct rank *r)
{
	for (uint32_t f = 0; f < r->s->n_families; f++)
		r->members[f].is_member = suite_comm_slot(r->s, f, r->index, &r->members[f].slot);
	open_device(r);
	exchange_ids(r);
	for (uint32_t f = 0; f < r->s->n_families; f++)
		if (r->s->families[f].made == SUITE_AT_START)
			init_comm(r, f);
}

/* ---- calls ---- */

static ncclRedOp_t redop_of(const struct suite_call *call)
{
	return call->redop <= CW_REDOP_AVG ? (ncclRedOp_t)call->redop : ncclSum;
}

static void collective(struct rank *r, const struct suite_call *call, ncclComm_t comm)
{
	const void *from = (const void *)(uintptr_t)r->from;
	void *to = (void *)(uintptr_t)r->to;
	ncclDataType_t type = (ncclDataType_t)call->dtype;
	CUstream stream = stream_of(r, call->stream);
	size_t n = call->count;

	switch (call->kind) {
	case CW_OP_ALL_REDUCE:
		CHECK_NCCL(ncclAllReduce(from, to, n, type, redop_of(call), comm, stream));
		break;
	case CW_OP_BROADCAST:
		CHECK_NCCL(ncclBroadcast(from, to, n, type, call->root, comm, stream));
		break;
	case CW_OP_REDUCE:
		CHECK_NCCL(ncclReduce(from, to, n, type, redop_of(call), call->root, comm, stream));
		break;
	case CW_OP_ALL_GATHER:
		CHECK_NCCL(ncclAllGather(from, to, n, type, comm, stream));
		break;
	case CW_OP_REDUCE_SCATTER:
		CHECK_NCCL(ncclReduceScatter(from, to, n, type, redop_of(call), comm, stream));
		break;
	case CW_OP_ALL_TO_ALL:
		CHECK_NCCL(ncclAlltoAll(from, to, n, type, comm, stream));
		break;
	case CW_OP_GATHER:
		CHECK_NCCL(ncclGather(from, to, n, type, call->root, comm, stream));
		break;
	case CW_OP_SCATTER:
		CHECK_NCCL(ncclScatter(from, to, n, type, call->root, comm, stream));
		break;
	default:
		die("a call of kind %u", call->kind);
	}
}

static void send_or_receive(struct rank *r, const struct suite_call *call, ncclComm_t comm,
			    int64_t peer)
{
	CUstream stream = stream_of(r, call->stream);
	ncclDataType_t type = (ncclDataType_t)call->dtype;

	if (peer < 0)
		return;
	if (call->kind == CW_OP_SEND)
		CHECK_NCCL(ncclSend((const void *)(uintptr_t)r->from, call->count, type, (int)peer,
				    comm, stream));
	else
		CHECK_NCCL(ncclRecv((void *)(uintptr_t)r->to, call->count, type, (int)peer, comm,
				    stream));
}

static void point_to_point(struct rank *r, const struct suite_call *call, const struct member *m)
{
	if (call->peer_kind != SUITE_PEER_EACH) {
		send_or_receive(r, call, m->comm, suite_peer(call, &m->slot));
		return;
	}
	CHECK_NCCL(ncclGroupStart());
	for (uint32_t p = 0; p < m->slot.nranks; p++)
		if (p != m->slot.place)
			send_or_receive(r, call, m->comm, p);
	CHECK_NCCL(ncclGroupEnd());
}

void rank_call(struct rank *r, const struct suite_call *call)
{
	struct member *m = call->family < r->s->n_families ? &r->members[call->family] : NULL;

	if (!m || !m->is_member)
		return;
	if (call->kind == CW_OP_COMM_INIT) {
		init_comm(r, call->family);
		return;
	}
	if (!m->is_ready)
		return;
	if (call->takes_ns)
		rank_occupy(r, call->stream, call->takes_ns);
	if (call->kind == CW_OP_COMM_SPLIT) {
		split_comm(r, call);
	} else if (call->kind == CW_OP_COMM_FINALIZE) {
		CHECK_NCCL(ncclCommFinalize(m->comm));
		CHECK_NCCL(ncclCommDestroy(m->comm));
		m->is_ready = false;
	} else if (cw_op_is_p2p(call->kind)) {
		point_to_point(r, call, m);
	} else {
		collective(r, call, m->comm);
	}
}
