/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of CUDA graphs that hold NCCL ops. We record one op of kind graph_launch per
 * communicator, which stands for all ops of the graph on this communicator. Lock-free, no
 * allocation. The duration grows with the runs of equal ops in the graph, and for the rolling hash
 * with its collectives.
 */
#include <errno.h>
#include <string.h>

#include "agent/cuda/progress.h"
#include "agent/ops/graph.h"
#include "agent/ops/graph_part.h"
#include "agent/ops/hot.h"
#include "agent/ops/p2p.h"
#include "agent/python/call_stack.h"
#include "agent/record/clock.h"
#include "agent/record/comms.h"
#include "model/signature.h"

#define NCCL_UNHANDLED_CUDA_ERROR 1

static bool belongs(const struct cw_rec_replay *replay, int c)
{
	return c >= 0 && replay->ops && replay->comm_generation == cw_record.comms[c].generation;
}

/*
 * Notes a launch that may overlap another one. All replays of a part share one pair of progress
 * words, which is right only as long as replays do not overlap.
 */
static void watch_streams(struct cw_graph_part *part, int c, cudaStream_t stream)
{
	struct cw_rec_replay *replay = cw_graph_replay_of(part);

	if (part->launch_op && part->launch_stream != stream && !cw_graph_is_idle(part, c))
		(void)__atomic_fetch_or(&replay->flags, CW_REC_REPLAY_MIXED, __ATOMIC_RELAXED);
	part->launch_stream = stream;
}

/* Stores the op in both rings. */
static void put(struct cw_graph_at *at, const struct cw_rec_op *op)
{
	struct cw_rec_comm *rc = &cw_record.comms[at->comm];
	uint64_t words[CW_OP_WORDS];

	memcpy(words, op, sizeof(words));
	CW_STORE(rc->op_index, op->op_index);
	CW_STORE(rc->last_enter_ns, op->enter_ns);
	cw_record_put(rc->ops, CW_REC_COMM_OPS, at->comm_ticket, words);
	cw_record_put(cw_record.ring, CW_REC_RING_OPS, at->ring_ticket, words);
}

/* Resets the graph's words to 0, and then writes that the stream reached the graph. */
static void write_reached(const struct cw_graph_at *at, cudaStream_t stream)
{
	uint16_t own = cw_graph_parts[at->part].slot;

	if (at->slot == CW_REC_NO_SLOT)
		return;
	if (own != CW_REC_NO_SLOT) {
		(void)cw_progress_completed(at->comm, own, stream, 0);
		(void)cw_progress_reached(at->comm, own, stream, 0);
	}
	(void)cw_progress_reached(at->comm, at->slot, stream, at->op_index);
}

static void enter_part(struct cw_graph_at *at, int c, cudaStream_t stream)
{
	struct cw_graph_part *part = &cw_graph_parts[at->part];
	struct cw_rec_replay *replay = cw_graph_replay_of(part);
	struct cw_rec_comm *rc = &cw_record.comms[c];
	struct cw_rec_op op = { .kind = CW_OP_GRAPH_LAUNCH,
				.dtype = CW_DTYPE_NONE,
				.redop = CW_REDOP_NONE,
				.comm = (uint16_t)c,
				.comm_generation = (uint16_t)rc->generation,
				.module = CW_REC_NO_SLOT,
				.stream = (uint64_t)(uintptr_t)stream,
				.tid = cw_tid(),
				.enter_ns = cw_op_ns() };

	if (cw_unlikely(cw_call_stacks_is_on))
		op.stack_id = cw_call_stack_take(NULL);
	at->comm = (uint16_t)c;
	at->comm_ticket = __atomic_fetch_add(&rc->ring_ticket, 1, __ATOMIC_RELAXED);
	at->ring_ticket = __atomic_fetch_add(&cw_record.header->ring_ticket, 1, __ATOMIC_RELAXED);
	at->op_index = at->comm_ticket + 1;
	watch_streams(part, c, stream);
	at->slot = cw_progress_at(c, stream, at->op_index).slot;
	part->launch_slot = at->slot;
	part->launch_op = at->op_index;
	CW_STORE(replay->launches, replay->launches + 1);
	CW_STORE(replay->last_launch_ns, op.enter_ns);
	if (replay->colls) {
		op.seq = CW_LOAD(rc->coll_returned) + 1;
		CW_STORE(rc->coll_entered, op.seq - 1 + replay->colls);
	} else {
		op.flags = CW_OPF_NO_COUNT;
	}
	op.op_index = at->op_index;
	op.progress_slot = at->slot;
	op.count = replay->colls;
	op.root_or_peer = cw_rec_replay_ref(at->part, replay->generation);
	op.replay = (uint32_t)replay->launches;
	put(at, &op);
	write_reached(at, stream);
}

bool cw_graph_launch_enter(struct cw_graph_launch *launch, void *exec, cudaStream_t stream)
{
	unsigned count = 0;
	const uint16_t *parts = cw_graph_parts_of(exec, &count);
	int saved_errno = errno;

	launch->count = 0;
	if (!parts)
		return false;
	if (cw_graph_is_captured(stream)) {
		/*
		 * A launch on a stream under capture makes the graph a child of the captured graph,
		 * and we cannot follow that.
		 */
		cw_graph_exec_unknown(exec);
		errno = saved_errno;
		return false;
	}
	for (unsigned i = 0; i < count && i < CW_GRAPH_COMMS; i++) {
		struct cw_graph_at *at = &launch->at[launch->count];
		int c = cw_graph_comm_of(&cw_graph_parts[parts[i]]);

		if (!belongs(&cw_record.replays[parts[i]], c))
			continue;
		at->part = parts[i];
		enter_part(at, c, stream);
		launch->count++;
	}
	errno = saved_errno;
	return launch->count > 0;
}

/* ---- counters of launched ops ---- */

static uint64_t bytes_of(const struct cw_rec_template *run)
{
	return run->count * cw_dtype_bytes(run->dtype);
}

static void count_p2p(int c, const struct cw_rec_template *run)
{
	uint32_t place = cw_p2p_place(c, run->root_or_peer);

	if (place == CW_P2P_NO_PLACE) {
		struct cw_rec_comm *rc = &cw_record.comms[c];

		(void)__atomic_fetch_add(&rc->p2p_dropped, run->repeat, __ATOMIC_RELAXED);
		return;
	}
	for (uint32_t i = 0; i < run->repeat; i++)
		cw_p2p_count(c, place, cw_p2p_direction(run->kind), bytes_of(run), NULL);
}

static void commit(int c, const struct cw_rec_replay *replay)
{
	uint64_t group_sum = 0, group_colls = 0, signature;
	uint32_t at = replay->first_plus_1;

	for (unsigned n = 0; at && n < CW_REC_TEMPLATES; n++) {
		const struct cw_rec_template *run = &cw_record.templates[at - 1];

		at = run->next_plus_1;
		if (cw_op_is_p2p(run->kind)) {
			count_p2p(c, run);
		} else if (cw_op_is_collective(run->kind)) {
			signature = cw_signature(run->kind, run->dtype, run->redop,
						 run->root_or_peer, run->count, bytes_of(run));
			group_sum += signature * run->repeat;
			group_colls += run->repeat;
			for (uint32_t i = 0; !run->flags && i < run->repeat; i++)
				cw_ops_commit(c, 1, signature);
		}
		if (run->flags & CW_REC_TEMPLATE_GROUP_END)
			cw_ops_commit(c, group_colls, group_sum);
		if (!run->flags || (run->flags & CW_REC_TEMPLATE_GROUP_END))
			group_sum = group_colls = 0;
	}
}

static void leave_part(const struct cw_graph_at *at, cudaStream_t stream, bool ok)
{
	struct cw_rec_comm *rc = &cw_record.comms[at->comm];
	unsigned flags = CW_OPF_RETURNED | (ok ? 0 : CW_OPF_DROPPED);
	uint64_t now = cw_op_ns();

	if (!ok || at->slot == CW_REC_NO_SLOT ||
	    !cw_progress_completed(at->comm, at->slot, stream, at->op_index))
		flags |= CW_FINISH_UNTRACK;
	cw_ops_finish(at->comm, at->ring_ticket, at->comm_ticket, now,
		      ok ? 0 : NCCL_UNHANDLED_CUDA_ERROR, flags, 0);
	if (ok)
		commit(at->comm, &cw_record.replays[at->part]);
	else
		CW_STORE(rc->coll_entered, CW_LOAD(rc->coll_returned));
	CW_STORE(rc->op_returned, CW_LOAD(rc->op_returned) + 1);
	CW_STORE(rc->last_return_ns, now);
}

void cw_graph_launch_leave(struct cw_graph_launch *launch, cudaStream_t stream, bool ok)
{
	int saved_errno = errno;

	for (unsigned i = 0; i < launch->count; i++)
		leave_part(&launch->at[i], stream, ok);
	errno = saved_errno;
}
