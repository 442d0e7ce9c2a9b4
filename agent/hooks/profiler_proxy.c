/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a call's handle:
 *
 *	bits 62 and 63: 01. bit 61: a send or receive. bit 60: captured into a CUDA graph.
 *	bits 53 to 59: entry of the communicator. bits 32 to 52: number of the replay, 0 = none.
 *	bits 0 to 31: low bits of the call's op_index, 0 = unknown.
 *
 * At each replay of a graph NCCL reports the launch of each captured call again. It passes the
 * handle that the call had at capture. The capture itself launches nothing. We therefore number the
 * replays by counting the launches.
 */
#include "agent/hooks/profiler_proxy.h"

#include "agent/base/state.h"
#include "agent/hooks/profiler_comms.h"
#include "agent/record/comms.h"
#include "agent/record/connections.h"
#include "model/op.h"
#include "model/signature.h"

#define CALL (UINT64_C(1) << 62)
#define CALL_P2P (UINT64_C(1) << 61)
#define CALL_CAPTURED (UINT64_C(1) << 60)
#define COMM_SHIFT 53
#define COMM_MASK 0x7fu
#define REPLAY_SHIFT 32
#define REPLAY_MAX 0x1fffffu
_Static_assert(CW_REC_COMMS <= COMM_MASK + 1, "entries fit");

/* Number of launches of each captured call. If the table is full, the replay is unknown. */
#define REPLAYS 2048u
#define REPLAY_TRIES 16u

static struct replay {
	uint64_t call; /* handle of the call; 0 = free */
	uint32_t launches;
} replays[REPLAYS];

void *cw_profiler_call(int c, uint64_t op_index, bool is_p2p, bool is_captured)
{
	return (void *)(uintptr_t)(CALL | (is_p2p ? CALL_P2P : 0) |
				   (is_captured ? CALL_CAPTURED : 0) | (uint64_t)c << COMM_SHIFT |
				   (uint32_t)op_index);
}

static bool is_call(uint64_t handle)
{
	return handle >> 62 == 1;
}

static uint32_t next_replay(uint64_t call)
{
	uint64_t hash = cw_hash_step(CW_HASH_INIT, call);

	for (uint32_t i = 0; i < REPLAY_TRIES; i++) {
		struct replay *r = &replays[(hash + i) % REPLAYS];
		uint64_t free = 0;

		if (CW_LOAD(r->call) != call &&
		    (CW_LOAD(r->call) ||
		     (!__atomic_compare_exchange_n(&r->call, &free, call, false, __ATOMIC_RELAXED,
						   __ATOMIC_RELAXED) &&
		      free != call)))
			continue;
		return __atomic_fetch_add(&r->launches, 1, __ATOMIC_RELAXED) % REPLAY_MAX + 1;
	}
	return 0;
}

void *cw_profiler_launch(void *call)
{
	uint64_t handle = (uintptr_t)call;

	if (!is_call(handle))
		return NULL;
	if (handle & CALL_CAPTURED && (uint32_t)handle)
		handle |= (uint64_t)next_replay(handle) << REPLAY_SHIFT;
	return (void *)(uintptr_t)handle;
}

void *cw_profiler_find_call(int c, unsigned kind, const void *send, const void *recv)
{
	const struct cw_rec_comm *rc = &cw_record.comms[c];
	uint64_t newest = CW_LOAD(rc->op_index), found = 0;

	for (uint64_t i = newest; cw_tls.depth && !found && i && newest - i < CW_REC_COMM_OPS;
	     i--) {
		const struct cw_rec_op *op = &rc->ops[(i - 1) % CW_REC_COMM_OPS];

		if (CW_LOAD(op->publish) != i || CW_LOAD(op->flags) & CW_OPF_RETURNED)
			break;
		if (CW_LOAD(op->kind) == kind && CW_LOAD(op->send_addr) == (uintptr_t)send &&
		    CW_LOAD(op->recv_addr) == (uintptr_t)recv)
			found = i;
	}
	return cw_profiler_call(c, found, cw_op_is_p2p(kind), false);
}

void *cw_profiler_proxy_op(const void *context, void *parent, int rank,
			   const struct cw_nccl_proxy_op *op, bool is_detailed)
{
	uint64_t call = (uintptr_t)parent;
	struct cw_connection_part part = {
		.owner = (uintptr_t)context,
		.rank = rank,
		.peer = op->peer,
		.comm = -1,
		.steps = (uint32_t)op->steps,
		.channel = op->channel,
		.flags = (op->is_send ? CW_REC_CONNECTION_SEND : 0) |
			 (is_detailed ? CW_REC_CONNECTION_DETAILED : 0),
	};

	/*
	 * The process that issued the op may run another plugin, whose pointers mean nothing here.
	 * Its handles of calls have a meaning here, because they are numbers.
	 */
	if ((uint32_t)op->pid != CW_LOAD(cw_record.header->pid))
		part.pid = (uint32_t)op->pid;
	else
		part.comm = cw_profiler_comms_of(context).entry;
	if (is_call(call)) {
		part.comm = (int)(call >> COMM_SHIFT & COMM_MASK);
		part.op = (uint32_t)call;
		part.replay = call >> REPLAY_SHIFT & REPLAY_MAX;
		part.flags |= call & CALL_P2P ? CW_REC_CONNECTION_P2P : 0;
	}
	return (void *)(uintptr_t)cw_connections_open(&part);
}

void *cw_profiler_proxy_step(void *parent, const struct cw_nccl_proxy_step *step)
{
	uint64_t part = (uintptr_t)parent;

	if (!cw_connections_is_part(part) || step->number < 0)
		return NULL;
	return (void *)(uintptr_t)cw_connections_step(part, (uint32_t)step->number);
}

bool cw_profiler_proxy_state(void *handle, int state, const struct cw_nccl_step_args *args)
{
	uint64_t step = (uintptr_t)handle;
	uint64_t bytes = args ? args->bytes : 0;

	if (!cw_connections_is_step(step))
		return cw_connections_is_part(step);
	switch (state) {
	case CW_NCCL_STATE_SEND_GPU_WAIT:
	case CW_NCCL_STATE_RECV_WAIT:
		cw_connections_count(step, CW_REC_STEP_POSTED, 0);
		break;
	case CW_NCCL_STATE_SEND_PEER_WAIT:
		cw_connections_count(step, CW_REC_STEP_READY, 0);
		break;
	case CW_NCCL_STATE_SEND_WAIT:
		cw_connections_count(step, CW_REC_STEP_HANDED, bytes);
		break;
	case CW_NCCL_STATE_RECV_FLUSH_WAIT:
		cw_connections_count(step, CW_REC_STEP_RECEIVED, bytes);
		break;
	case CW_NCCL_STATE_RECV_GPU_WAIT:
		cw_connections_count(step, CW_REC_STEP_GIVEN, 0);
		break;
	default:
		break;
	}
	return true;
}

bool cw_profiler_proxy_stop(void *handle)
{
	uint64_t event = (uintptr_t)handle;

	if (cw_connections_is_step(event))
		cw_connections_count(event, CW_REC_STEP_DONE, 0);
	else if (cw_connections_is_part(event))
		cw_connections_close(event);
	else
		return false;
	return true;
}

static void forget_replays(int c)
{
	for (uint32_t i = 0; i < REPLAYS; i++) {
		uint64_t call = CW_LOAD(replays[i].call);

		if (call && (call >> COMM_SHIFT & COMM_MASK) == (uint32_t)c) {
			CW_STORE(replays[i].launches, 0);
			CW_STORE(replays[i].call, 0);
		}
	}
}

void cw_profiler_proxy_forget(int c)
{
	cw_connections_forget(c);
	if (c >= 0)
		forget_replays(c);
}
