/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path that every recorded call pays for. A single collective that succeeds runs straight
 * through, and the code of rare cases is out of line. We assemble an op in registers, and write it
 * as words to its communicator's ring and to the bulk ring.
 */
#include "agent/ops/ops.h"

#include <errno.h>

#include "agent/base/state.h"
#include "agent/cuda/device_times.h"
#include "agent/cuda/progress.h"
#include "agent/cuda/progress_budget.h"
#include "agent/cuda/summary.h"
#include "agent/ops/graph.h"
#include "agent/ops/group.h"
#include "agent/ops/hot.h"
#include "agent/ops/p2p.h"
#include "agent/python/call_stack.h"
#include "agent/record/clock.h"
#include "agent/record/comms.h"
#include "agent/record/modules.h"
#include "model/signature.h"

#define STREAM_PER_THREAD ((cudaStream_t)2) /* cudaStreamPerThread, CU_STREAM_PER_THREAD */

/* log2 of the bytes of each dtype, two bits each. A table would cost one more cache miss. */
#define DTYPE_SHIFTS                                                                               \
	(2u << 2 * CW_DTYPE_INT32 | 2u << 2 * CW_DTYPE_UINT32 | 3u << 2 * CW_DTYPE_INT64 |         \
	 3u << 2 * CW_DTYPE_UINT64 | 1u << 2 * CW_DTYPE_FP16 | 2u << 2 * CW_DTYPE_FP32 |           \
	 3u << 2 * CW_DTYPE_FP64 | 1u << 2 * CW_DTYPE_BF16)
_Static_assert(CW_DTYPE__MAX <= 16, "two bits each");

static inline bool enter(const struct cw_real *real, const void *caller)
{
	if (cw_tls.depth)
		return false;
	if (cw_unlikely(!cw_agent_is_armed()))
		return false;
	if (cw_unlikely(cw_real_is_inside(real, caller)))
		return false;
	cw_tls.depth = 1;
	return true;
}

bool cw_enter(const struct cw_real *real, const void *caller)
{
	return enter(real, caller);
}

void cw_leave(void)
{
	cw_tls.depth = 0;
}

CW_HOT void cw_ops_commit(int c, uint64_t colls, uint64_t signature_sum)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];
	uint64_t old = CW_LOAD(rc->coll_returned);
	uint64_t hash = cw_hash_commit(CW_LOAD(rc->hash), signature_sum);
	struct cw_rec_checkpoint *cp;
	int slot;

	if (!colls)
		return;
	CW_STORE(rc->hash, hash);
	CW_STORE(rc->coll_returned, old + colls);
	slot = cw_checkpoint_slot(old, old + colls);
	if (slot < 0)
		return;
	cp = &rc->checkpoints[slot];
	__atomic_store_n(&cp->coll_seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	CW_STORE(cp->hash, hash);
	__atomic_store_n(&cp->coll_seq, old + colls, __ATOMIC_RELEASE);
	__atomic_store_n(&rc->checkpoint_ticket, rc->checkpoint_ticket + 1, __ATOMIC_RELEASE);
}

CW_HOT void cw_ops_finish(int c, uint64_t ring_ticket, uint64_t comm_ticket, uint64_t return_ns,
			  int result, unsigned flags_set, unsigned flags_clear)
{
	cw_record_finish(cw_record.comms[c].ops, CW_REC_COMM_OPS, comm_ticket, return_ns, result,
			 flags_set, flags_clear);
	cw_record_finish(cw_record.ring, CW_REC_RING_OPS, ring_ticket, return_ns, result, flags_set,
			 flags_clear);
}

/*
 * Reserves the op's ticket in its communicator. All ops take one ticket, so the ticket also gives
 * the op's number.
 */
static inline void number(struct cw_op_call *call)
{
	struct cw_rec_comm *rc = &cw_record.comms[call->comm];

	call->comm_ticket = __atomic_fetch_add(&rc->ring_ticket, 1, __ATOMIC_RELAXED);
	call->op_index = call->comm_ticket + 1;
}

static inline uint64_t bytes_of(const struct cw_op_desc *desc)
{
	unsigned dtype = (unsigned)desc->dtype;

	return dtype < CW_DTYPE__MAX ? desc->count << (DTYPE_SHIFTS >> 2 * dtype & 3) : 0;
}

/*
 * Sets coll_seq and signature. An empty call, or a call on a communicator of one rank, gets neither
 * of them, because it never reaches a peer.
 */
static inline void number_collective(struct cw_op_call *call, const struct cw_op_desc *desc,
				     struct cw_group *group)
{
	struct cw_rec_comm *rc = &cw_record.comms[call->comm];

	if (desc->count == 0 || CW_LOAD(cw_comms[call->comm].nranks) == 1) {
		call->flags |= CW_OPF_NO_COUNT;
		return;
	}
	call->seq = CW_LOAD(rc->coll_returned) + 1;
	if (group)
		call->seq += cw_group_comm(group, call->comm)->colls;
	else
		CW_STORE(rc->coll_entered, call->seq);
	call->signature = cw_signature(desc->kind, (unsigned)desc->dtype, cw_op_redop(desc->redop),
				       desc->root_or_peer, desc->count, call->bytes);
}

static __attribute__((noinline)) void
number_p2p(struct cw_op_call *call, const struct cw_op_desc *desc, const struct cw_group *group)
{
	call->peer_index = cw_p2p_place(call->comm, desc->root_or_peer);
	if (call->peer_index == CW_P2P_NO_PLACE) {
		struct cw_rec_comm *rc = &cw_record.comms[call->comm];

		(void)__atomic_fetch_add(&rc->p2p_dropped, 1, __ATOMIC_RELAXED);
		cw_record_drop(CW_REC_DROP_P2P);
		return;
	}
	call->seq = cw_p2p_next(call->comm, call->peer_index, cw_p2p_direction(desc->kind), group);
}

static inline int find_comm(ncclComm_t comm)
{
	int c = cw_comm_find(comm);

	if (cw_unlikely(c < 0))
		c = cw_comm_settle_deferred(-1, comm);
	if (cw_unlikely(c < 0))
		cw_record_drop(CW_REC_DROP_OPS);
	return c;
}

/*
 * Finds the op's progress slot. An empty collective needs no slot, because it never reaches the
 * device.
 */
static inline void place_progress(struct cw_op_call *call, const struct cw_op_desc *desc,
				  struct cw_group *group, bool is_captured)
{
	struct cw_progress_at at = { .slot = CW_REC_NO_SLOT, .is_captured = is_captured };

	if (call->flags & CW_OPF_NO_COUNT)
		return;
	if (__atomic_load_n(&cw_comms[call->comm].context, __ATOMIC_ACQUIRE))
		at = cw_progress_at(call->comm, call->stream, call->op_index);
	if (at.is_captured) {
		call->flags |= CW_OPF_CAPTURED;
		cw_graph_op(call, desc, group);
		return;
	}
	call->slot = at.slot;
	if (at.slot != CW_REC_NO_SLOT && group &&
	    !cw_group_pair(group, call->comm, at.slot, call->stream, call->op_index)) {
		call->slot = CW_REC_NO_SLOT;
		cw_record_drop(CW_REC_DROP_PROGRESS);
	}
}

/*
 * Decides to skip the progress writes of an op that the budget cannot pay for. We skip only
 * collectives that no rank leaves before all ranks have entered. A missing rank then proves that
 * the op has not completed. On the per-thread default stream we skip no op: its handle stands for
 * several streams, so a later op proves nothing.
 */
static __attribute__((noinline)) void leave_out(struct cw_op_call *call, const void *caller)
{
	unsigned since;

	if (!cw_rec_slot_is_written(call->slot) || !call->seq || call->stream == STREAM_PER_THREAD)
		return;
	switch (call->kind) {
	case CW_OP_ALL_REDUCE:
	case CW_OP_ALL_GATHER:
	case CW_OP_REDUCE_SCATTER:
	case CW_OP_ALL_TO_ALL:
		break;
	default:
		return;
	}
	since = cw_progress_budget_leave_out(
		cw_progress_budget_of(call->slot),
		cw_progress_budget_spot(call->kind, call->desc->count, caller), call->op_index,
		call->enter_ns);
	if (!since)
		return;
	call->slot = cw_rec_slot_untracked(call->slot, since);
	call->flags |= CW_OPF_UNTRACKED;
	(void)__atomic_fetch_add(&cw_record.header->progress_untracked, 1, __ATOMIC_RELAXED);
}

/*
 * Encodes the op as the words of struct cw_rec_op, in registers. The CPU would stall if we stored
 * small fields and loaded them back as words. Little-endian, as CW_RECORD_MAGIC says.
 */
static inline void encode_op(uint64_t words[CW_OP_WORDS], const struct cw_op_call *call,
			     const struct cw_op_desc *desc, uint32_t group_id, const void *caller)
{
	uint32_t generation = CW_LOAD(cw_comms[call->comm].generation);
	uint32_t call_offset;
	uint16_t module;

	cw_module_of(caller, &module, &call_offset);
	words[1] = call->op_index;
	words[2] = call->seq;
	words[3] = call->enter_ns;
	words[4] = 0; /* return_ns */
	words[5] = desc->count;
	words[6] = call->bytes;
	words[7] = (uintptr_t)desc->send;
	words[8] = (uintptr_t)desc->recv;
	words[9] = (uintptr_t)desc->stream;
	words[10] = desc->kind | (desc->dtype & 0xffu) << 8 |
		    (uint32_t)cw_op_redop(desc->redop) << 16 |
		    (uint64_t)(uint32_t)desc->root_or_peer << 32;
	words[11] = group_id | (uint64_t)cw_tid() << 32;
	words[12] = (uint16_t)call->comm | (uint64_t)call->flags << 32 | (uint64_t)call->slot << 48;
	words[13] = module | (generation & 0xffff) << 16 | (uint64_t)call_offset << 32;
	words[14] = (uint64_t)call->summary_id << 32; /* put() adds stack_id */
	words[15] = 0;                                /* replay, device_ns */
}

/*
 * Writes the op into both rings and sets the call's ring_ticket. The caller has filled in all other
 * fields.
 */
static inline __attribute__((always_inline)) void
put(struct cw_op_call *call, const struct cw_op_desc *desc, uint32_t group_id, const void *caller)
{
	struct cw_rec_comm *rc = &cw_record.comms[call->comm];
	uint64_t words[CW_OP_WORDS];

	encode_op(words, call, desc, group_id, caller);
	if (cw_unlikely(cw_call_stacks_is_on))
		words[14] |= cw_call_stack_take(caller);
	call->ring_ticket = __atomic_fetch_add(&cw_record.header->ring_ticket, 1, __ATOMIC_RELAXED);
	cw_tls.next_slot = (uint32_t)call->ring_ticket + 1;
	cw_tls.next_comm_slot = (uint32_t)call->comm_ticket + 1;
	CW_STORE(rc->op_index, call->op_index);
	CW_STORE(rc->last_enter_ns, call->enter_ns);
	cw_record_put(rc->ops, CW_REC_COMM_OPS, call->comm_ticket, words);
	cw_record_put(cw_record.ring, CW_REC_RING_OPS, call->ring_ticket, words);
}

/*
 * Begins a call. We set one field at a time, because GCC would clear the whole struct with "rep
 * stos". Such a clear takes longer than all other code of this path.
 */
static inline void begin(struct cw_op_call *call, const struct cw_op_desc *desc)
{
	call->comm = find_comm(desc->comm);
	call->kind = desc->kind;
	call->slot = CW_REC_NO_SLOT;
	call->flags = 0;
	call->part_plus_1 = 0;
	call->summary_id = 0;
	call->peer_index = CW_P2P_NO_PLACE;
	call->ring_ticket = call->comm_ticket = 0;
	call->enter_ns = 0;
	call->op_index = 0;
	call->seq = 0;
	call->signature = 0;
	call->bytes = bytes_of(desc);
	call->stream = desc->stream;
	call->time_entry = 0;
	call->desc = desc;
}

/*
 * Returns whether cw_op_enter() must query whether the stream is captured. Without progress no
 * later step notices a capture. If NCCL itself calls us we must not call CUDA, so we make no query.
 */
static inline bool is_asked_first(const struct cw_op_call *call)
{
	const struct cw_comm *c = &cw_comms[call->comm];

	return !__atomic_load_n(&c->context, __ATOMIC_ACQUIRE) && c->real;
}

CW_HOT bool cw_op_enter(struct cw_op_call *call, const struct cw_real *real, const void *caller,
			const struct cw_op_desc *desc)
{
	struct cw_group *group = cw_tls.group_depth ? cw_tls.group : NULL;
	bool is_captured;

	if (!enter(real, caller))
		return false;
	begin(call, desc);
	if (call->comm < 0)
		return true;
	/*
	 * Query before the first locked instruction, because that instruction holds back all code
	 * behind it.
	 */
	is_captured = is_asked_first(call) && cw_graph_is_captured(call->stream);
	number(call);
	if (cw_unlikely(group)) {
		call->flags = CW_OPF_GROUPED | CW_OPF_QUEUED;
		(void)cw_group_comm(group, call->comm);
	}
	if (cw_op_is_collective(desc->kind))
		number_collective(call, desc, group);
	else if (cw_op_is_p2p(desc->kind))
		number_p2p(call, desc, group);
	place_progress(call, desc, group, is_captured);
	if (desc->send && desc->send == desc->recv)
		call->flags |= CW_OPF_IN_PLACE;
	call->enter_ns = cw_op_ns();
	if (cw_unlikely(cw_summary_is_on) && !group)
		call->summary_id = cw_summary_take(call, desc, false);
	if (cw_unlikely(cw_progress_budget_is_on) && !group)
		leave_out(call, caller);
	put(call, desc, group ? (uint32_t)group->id : 0, caller);
	if (!group && cw_rec_slot_is_written(call->slot))
		(void)cw_progress_reached(call->comm, call->slot, call->stream, call->op_index);
	if (cw_unlikely(cw_times_is_on))
		call->time_entry = cw_times_begin(call, cw_op_ns());
	return true;
}

/*
 * Handles the return of a grouped call. At this point NCCL has only queued the op. The op itself
 * returns with its group.
 */
static __attribute__((noinline)) void leave_grouped(struct cw_op_call *call, struct cw_group *group,
						    ncclResult_t result)
{
	struct cw_group_comm *gc = cw_group_comm(group, call->comm);

	cw_graph_op_done(call, gc, result == ncclSuccess || result == ncclInProgress);
	if (result != ncclSuccess && result != ncclInProgress) {
		cw_ops_finish(call->comm, call->ring_ticket, call->comm_ticket, cw_op_ns(), result,
			      CW_OPF_RETURNED | CW_OPF_DROPPED, CW_OPF_QUEUED);
		if (cw_unlikely(cw_summary_is_on))
			cw_group_samples_spoil(&group->samples);
		return;
	}
	if (cw_unlikely(cw_summary_is_on))
		cw_group_samples_add(&group->samples, call);
	if (call->peer_index != CW_P2P_NO_PLACE) {
		cw_p2p_count(call->comm, call->peer_index, cw_p2p_direction(call->kind),
			     call->bytes, group);
	} else if (call->seq) {
		gc->colls++;
		gc->signature_sum += call->signature;
	}
}

/*
 * Returns whether we skipped the op's writes and the writes of later ops will show its completion.
 */
static inline bool is_shown_by_later(const struct cw_op_call *call, ncclResult_t result,
				     uint64_t now)
{
	if (cw_likely(!(call->flags & CW_OPF_UNTRACKED)))
		return false;
	cw_progress_budget_return(cw_progress_budget_of(cw_rec_slot_of(call->slot)), now);
	return result == ncclSuccess;
}

/*
 * Summarises the output. If the pool was full for this group, the op is not on its stream yet. We
 * then count the summary as dropped.
 */
static __attribute__((noinline)) void look_at_output(const struct cw_op_call *call)
{
	if (cw_tls.group_depth)
		cw_record_drop(CW_REC_DROP_SUMMARIES);
	else
		(void)cw_summary_take(call, call->desc, true);
}

static inline void leave_single(struct cw_op_call *call, ncclResult_t result)
{
	struct cw_rec_comm *rc = &cw_record.comms[call->comm];
	bool ok = result == ncclSuccess || result == ncclInProgress;
	unsigned flags = CW_OPF_RETURNED;
	uint64_t now = cw_op_ns();
	bool tracked = cw_rec_slot_is_written(call->slot);

	/*
	 * The clock's rate may have changed since enter_ns, usually by less than the duration of
	 * the call. A call must not return before it began.
	 */
	now = now < call->enter_ns ? call->enter_ns : now;
	if (cw_unlikely(call->time_entry))
		cw_times_end(call, call->time_entry, result == ncclSuccess);
	if (cw_unlikely(call->part_plus_1))
		cw_graph_op_done(call, NULL, ok);
	if (ok && tracked)
		tracked =
			result == ncclSuccess &&
			cw_progress_completed(call->comm, call->slot, call->stream, call->op_index);
	if (!tracked && !is_shown_by_later(call, result, now))
		flags |= CW_FINISH_UNTRACK;
	if (cw_unlikely(cw_summary_is_on) && result == ncclSuccess)
		look_at_output(call);
	if (result == ncclInProgress)
		flags |= CW_OPF_IN_PROGRESS;
	if (!ok)
		flags |= CW_OPF_DROPPED;
	cw_ops_finish(call->comm, call->ring_ticket, call->comm_ticket, now, result, flags, 0);
	if (!ok) {
		if (call->seq && cw_op_is_collective(call->kind))
			CW_STORE(rc->coll_entered, CW_LOAD(rc->coll_returned));
		cw_comm_failed(call->comm, result);
	} else if (call->peer_index != CW_P2P_NO_PLACE) {
		cw_p2p_count(call->comm, call->peer_index, cw_p2p_direction(call->kind),
			     call->bytes, NULL);
	} else if (call->seq) {
		cw_ops_commit(call->comm, 1, call->signature);
	}
	CW_STORE(rc->op_returned, CW_LOAD(rc->op_returned) + 1);
	CW_STORE(rc->last_return_ns, now);
}

CW_HOT void cw_op_leave(struct cw_op_call *call, ncclResult_t result)
{
	struct cw_group *group = cw_tls.group_depth ? cw_tls.group : NULL;

	if (call->comm >= 0) {
		if (group)
			leave_grouped(call, group, result);
		else
			leave_single(call, result);
	}
	cw_tls.depth = 0;
}

/* ---- calls that block the host ---- */

void cw_hostop_enter(struct cw_op_call *call, int c, unsigned kind, uint64_t new_comm_id,
		     const void *caller)
{
	struct cw_group *group = cw_tls.group_depth ? cw_tls.group : NULL;
	struct cw_rec_header *h = cw_record.header;
	const struct cw_op_desc desc = {
		.kind = (uint8_t)kind,
		.dtype = CW_DTYPE_NONE,
		.redop = CW_REDOP_NONE,
		.root_or_peer = CW_PEER_NONE,
	};

	*call = (struct cw_op_call){
		.comm = c,
		.kind = (uint8_t)kind,
		.slot = CW_REC_NO_SLOT,
		.flags = CW_OPF_NO_COUNT,
		.enter_ns = cw_op_ns(),
	};
	if (new_comm_id) {
		CW_STORE(h->host_call_comm_id, new_comm_id);
		CW_STORE(h->host_call_enter_ns, call->enter_ns);
		CW_STORE(h->host_call_kind, (uint64_t)kind);
	}
	if (c < 0)
		return;
	number(call);
	if (group) {
		call->flags |= CW_OPF_GROUPED | CW_OPF_QUEUED;
		(void)cw_group_comm(group, c);
	}
	put(call, &desc, group ? (uint32_t)group->id : 0, caller);
}

void cw_hostop_leave(struct cw_op_call *call, ncclResult_t result)
{
	bool ok = result == ncclSuccess || result == ncclInProgress;
	unsigned flags = CW_OPF_RETURNED | (ok ? 0 : CW_OPF_DROPPED) |
			 (result == ncclInProgress ? CW_OPF_IN_PROGRESS : 0);
	uint64_t now = cw_op_ns();
	struct cw_rec_comm *rc;

	CW_STORE(cw_record.header->host_call_kind, (uint64_t)0);
	if (call->comm < 0)
		return;
	rc = &cw_record.comms[call->comm];
	/* A queued call returns with its group, and we complete its op there. */
	if ((call->flags & CW_OPF_QUEUED) && ok)
		return;
	cw_ops_finish(call->comm, call->ring_ticket, call->comm_ticket, now, result, flags,
		      CW_OPF_QUEUED);
	if (!ok)
		cw_comm_failed(call->comm, result);
	CW_STORE(rc->op_returned, CW_LOAD(rc->op_returned) + 1);
	CW_STORE(rc->last_return_ns, now);
}
