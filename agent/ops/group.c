/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group has only sums in memory, not a list of its ops. To update its ops at launch and at the
 * end, we search the rings for ops with the group's number, from the first ticket that the group
 * can have. An op that another op has overwritten needs no update.
 */
#include "agent/ops/group.h"

#include <string.h>

#include "agent/base/state.h"
#include "agent/cuda/progress.h"
#include "agent/cuda/summary.h"
#include "agent/ops/graph.h"
#include "agent/ops/hot.h"
#include "agent/ops/p2p.h"
#include "agent/record/clock.h"
#include "agent/record/comms.h"

static struct cw_group pool[CW_GROUPS];

void cw_group_begin(void)
{
	for (unsigned i = 0; i < CW_GROUPS; i++) {
		struct cw_group *group = &pool[i];
		uint32_t unused = 0;

		if (!__atomic_compare_exchange_n(&group->is_used, &unused, 1, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		group->id =
			__atomic_fetch_add(&cw_record.header->group_ticket, 1, __ATOMIC_RELAXED) +
			1;
		/* 0 in the rings means "in no group", so no group may have it. */
		if (!(uint32_t)group->id)
			group->id = __atomic_fetch_add(&cw_record.header->group_ticket, 1,
						       __ATOMIC_RELAXED) +
				    1;
		group->first_ticket = CW_LOAD(cw_record.header->ring_ticket);
		group->comm_count = group->pair_count = group->made_count = 0;
		memset(group->place, 0, sizeof(group->place));
		cw_tls.group = group;
		return;
	}
	/*
	 * All groups are in use. We record each op by itself. The numbers stay right, but the
	 * group's hash is wrong.
	 */
	cw_record_drop(CW_REC_DROP_GROUP);
	cw_tls.group = NULL;
}

struct cw_group_comm *cw_group_comm(struct cw_group *group, int c)
{
	struct cw_group_comm *gc;

	if (group->place[c])
		return &group->comms[group->place[c] - 1];
	gc = &group->comms[group->comm_count++];
	*gc = (struct cw_group_comm){
		.comm = (uint16_t)c,
		/* The ring counter already includes the op that opens this entry. */
		.first_ticket = CW_LOAD(cw_record.comms[c].ring_ticket) - 1,
	};
	group->place[c] = (uint8_t)group->comm_count;
	return gc;
}

bool cw_group_pair(struct cw_group *group, int c, uint16_t slot, cudaStream_t stream,
		   uint64_t op_index)
{
	struct cw_group_pair *pair;

	for (unsigned i = group->pair_count; i-- > 0;) {
		pair = &group->pairs[i];
		if (pair->slot == slot && pair->comm == c) {
			pair->op_index = op_index;
			return true;
		}
	}
	if (group->pair_count == CW_GROUP_PAIRS)
		return false;
	group->pairs[group->pair_count++] = (struct cw_group_pair){
		.comm = (uint16_t)c, .slot = slot, .stream = stream, .op_index = op_index
	};
	return true;
}

void cw_group_made(struct cw_group *group, int c, ncclComm_t *where)
{
	if (group->made_count == CW_REC_COMMS)
		return;
	group->made[group->made_count].comm = (uint16_t)c;
	group->made[group->made_count++].where = where;
}

/* Updates every op of the group that the ring still holds. */
static void each_op(struct cw_rec_op *ring, uint32_t count, uint64_t first, uint64_t end,
		    uint32_t id, uint64_t return_ns, int result, unsigned set, unsigned clear)
{
	if (end - first > count)
		first = end - count;
	for (uint64_t t = first; t != end; t++) {
		const struct cw_rec_op *op = &ring[t & (count - 1)];

		if (CW_LOAD(op->group_id) == id && !(CW_LOAD(op->flags) & CW_OPF_RETURNED))
			cw_record_finish(ring, count, t, return_ns, result, set, clear);
	}
}

static void mark(struct cw_group *group, uint64_t return_ns, int result, unsigned set,
		 unsigned clear)
{
	uint32_t id = (uint32_t)group->id;

	for (unsigned i = 0; i < group->comm_count; i++) {
		const struct cw_group_comm *gc = &group->comms[i];
		struct cw_rec_comm *rc = &cw_record.comms[gc->comm];

		each_op(rc->ops, CW_REC_COMM_OPS, gc->first_ticket, CW_LOAD(rc->ring_ticket), id,
			return_ns, result, set, clear);
	}
	if (group->comm_count)
		each_op(cw_record.ring, CW_REC_RING_OPS, group->first_ticket,
			CW_LOAD(cw_record.header->ring_ticket), id, return_ns, result, set, clear);
}

void cw_group_prepare(struct cw_group *group)
{
	if (cw_unlikely(cw_summary_is_on))
		cw_group_samples_take_inputs(&group->samples);
}

void cw_group_launch(struct cw_group *group)
{
	mark(group, 0, 0, 0, CW_OPF_QUEUED);
	for (unsigned i = 0; i < group->comm_count; i++) {
		const struct cw_group_comm *gc = &group->comms[i];
		struct cw_rec_comm *rc = &cw_record.comms[gc->comm];

		if (gc->colls)
			CW_STORE(rc->coll_entered, CW_LOAD(rc->coll_returned) + gc->colls);
		if (gc->part_plus_1)
			cw_graph_group_launch(gc);
	}
	for (unsigned i = 0; i < group->pair_count; i++) {
		const struct cw_group_pair *p = &group->pairs[i];

		(void)cw_progress_reached(p->comm, p->slot, p->stream, p->op_index);
	}
}

static void settle_made(struct cw_group *group, ncclResult_t result)
{
	for (unsigned i = 0; i < group->made_count; i++) {
		int c = group->made[i].comm;

		if (result == ncclSuccess) {
			if (group->made[i].where)
				cw_comm_bind(c, *group->made[i].where);
			cw_comm_ready(c);
		} else if (result == ncclInProgress) {
			if (group->made[i].where && !cw_comms[c].handle)
				cw_comm_defer(c, group->made[i].where, cw_comms[c].parent);
		} else {
			cw_comm_set_state(c, CW_COMM_FAILED, true);
		}
	}
}

/*
 * Writes "completed" for all streams of the group. Returns false if we cannot track the group's ops
 * on the device.
 */
static bool complete_pairs(struct cw_group *group, ncclResult_t result)
{
	bool tracked = result == ncclSuccess;

	for (unsigned i = 0; i < group->pair_count && result == ncclSuccess; i++) {
		const struct cw_group_pair *p = &group->pairs[i];

		if (!cw_progress_completed(p->comm, p->slot, p->stream, p->op_index))
			tracked = false;
	}
	return tracked;
}

static void settle_comm(struct cw_group_comm *gc, ncclResult_t result, bool commit, uint64_t now)
{
	struct cw_rec_comm *rc = &cw_record.comms[gc->comm];

	if (commit)
		cw_ops_commit(gc->comm, gc->colls, gc->signature_sum);
	if (gc->part_plus_1)
		cw_graph_group_done(gc, commit);
	CW_STORE(rc->coll_entered, CW_LOAD(rc->coll_returned));
	cw_p2p_settle(gc, commit);
	if (!commit && result != ncclSuccess)
		cw_comm_failed(gc->comm, result);
	CW_STORE(rc->op_returned, CW_LOAD(rc->op_index));
	CW_STORE(rc->last_return_ns, now);
}

/*
 * Summarises the outputs of the group. Like those of a single op, the summaries come after the
 * "completed" words on the stream. We skip them if NCCL launches from another thread.
 */
static void settle_samples(struct cw_group *group, bool is_on_streams)
{
	if (is_on_streams)
		cw_group_samples_take_outputs(&group->samples);
	cw_group_samples_forget(&group->samples);
}

void cw_group_finish(struct cw_group *group, ncclResult_t result, bool launched)
{
	bool commit = launched && (result == ncclSuccess || result == ncclInProgress);
	unsigned set = CW_OPF_RETURNED;
	uint64_t now = cw_op_ns();

	if (!commit)
		set |= CW_OPF_DROPPED;
	if (result == ncclInProgress)
		set |= CW_OPF_IN_PROGRESS;
	if (commit && !complete_pairs(group, result))
		set |= CW_FINISH_UNTRACK;
	if (cw_unlikely(cw_summary_is_on))
		settle_samples(group, launched && result == ncclSuccess);
	mark(group, now, result, set, CW_OPF_QUEUED);
	for (unsigned i = 0; i < group->comm_count; i++)
		settle_comm(&group->comms[i], result, commit, now);
	settle_made(group, result); /* a simulated group also creates its communicators */
	cw_tls.group = NULL;
	__atomic_store_n(&group->is_used, 0, __ATOMIC_RELEASE);
}
