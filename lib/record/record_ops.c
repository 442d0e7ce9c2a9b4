/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads ops from rings without a lock, while their writer keeps writing. Our copy of an op is whole
 * if two reads agree and the op is published (cw_record_read_slots()). Each comm has a small ring
 * in its own entry for its newest ops. All comms share the large ring, in which we search for older
 * ops.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "record/record_internal.h"

/*
 * Number of double reads of a slot. If each of them differs, the writer is overwriting the slot,
 * and we give up.
 */
#define SLOT_TRIES 3

static bool lies_right(const struct cw_rec_op *op, uint32_t ring_count, uint32_t slot)
{
	return op->publish != 0 && (op->publish - 1) % ring_count == slot;
}

/* Reads one slot until two copies agree. If they never agree, sets publish to 0. */
static int read_slot_again(const struct cw_record *rec, uint64_t offset, struct cw_rec_op *op)
{
	struct cw_rec_op again;
	int r;

	for (int i = 0; i < SLOT_TRIES; i++) {
		r = cw_record_pread(rec, &again, sizeof(again), offset);
		if (r < 0)
			return r;
		if (memcmp(op, &again, sizeof(again)) == 0)
			return 0;
		*op = again;
	}
	op->publish = 0;
	return 0;
}

/*
 * We read all slots twice, and accept a slot only if both copies are equal and published. The
 * writer clears publish before it changes a slot. A pread copies in no promised order, so publish
 * inside one copy would prove nothing.
 *
 * Two equal copies of the whole slot are proof if the second read begins after the first has ended.
 * If the first copy is half-written, the second one differs from it. An op that returns between the
 * two reads makes the copies differ, too.
 */
int cw_record_read_slots(const struct cw_record *rec, uint64_t ring_offset, uint32_t stride,
			 uint32_t ring_count, uint32_t first, uint32_t n, struct cw_rec_op *ret)
{
	const struct cw_record_section ring = { ring_offset, stride, ring_count };
	uint64_t offset = ring_offset + (uint64_t)first * stride;
	struct cw_rec_op again[CW_RECORD_CHUNK];
	int r;

	r = cw_record_read_table(rec, &ring, first, n, sizeof(*ret), ret);
	if (r == 0)
		r = cw_record_read_table(rec, &ring, first, n, sizeof(*ret), again);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		if (memcmp(&ret[i], &again[i], sizeof(again[i])) != 0) {
			ret[i] = again[i];
			r = read_slot_again(rec, offset + (uint64_t)i * stride, &ret[i]);
		}
		if (!lies_right(&ret[i], ring_count, first + i))
			ret[i].publish = 0;
	}
	return r;
}

bool cw_record_op_is_of(const struct cw_record_comm *comm, const struct cw_rec_op *op)
{
	return op->publish != 0 && op->comm == comm->index && op->op_index != 0 &&
	       op->comm_generation == (uint16_t)comm->entry.generation;
}

static int compare_ops(const void *a, const void *b)
{
	const struct cw_rec_op *x = a, *y = b;

	return (x->op_index > y->op_index) - (x->op_index < y->op_index);
}

/*
 * Sorts the ops of a communicator's ring in linear time, because they ascend from the oldest slot
 * on. Returns false for a ring that its writer has filled in another order.
 */
static bool rotate(struct cw_rec_op *ops, size_t n)
{
	struct cw_rec_op newer[CW_REC_COMM_OPS];
	size_t oldest = 0;

	if (n > CW_REC_COMM_OPS)
		return false;
	for (size_t i = 1; i < n; i++) {
		if (ops[i].op_index >= ops[i - 1].op_index)
			continue;
		if (oldest)
			return false;
		oldest = i;
	}
	if (!oldest)
		return true;
	if (ops[n - 1].op_index > ops[0].op_index)
		return false;
	memcpy(newer, ops, oldest * sizeof(*ops));
	memmove(ops, &ops[oldest], (n - oldest) * sizeof(*ops));
	memcpy(&ops[n - oldest], newer, oldest * sizeof(*ops));
	return true;
}

static size_t sort_unique(struct cw_rec_op *ops, size_t n)
{
	size_t out = 0;

	if (!rotate(ops, n))
		qsort(ops, n, sizeof(*ops), compare_ops);
	for (size_t i = 0; i < n; i++)
		if (out == 0 || ops[out - 1].op_index != ops[i].op_index)
			ops[out++] = ops[i];
	return out;
}

int cw_record_read_comm_ring(const struct cw_record *rec, const struct cw_record_comm *comm,
			     struct cw_rec_op *ops, size_t *ret_n)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_COMMS];
	uint64_t offset = s->offset + (uint64_t)comm->index * s->entry_bytes;
	size_t n = 0;
	int r;

	if (comm->index >= s->count)
		return -EINVAL;
	r = cw_record_read_slots(rec, offset + CW_RECORD_IDENTITY_BYTES, sizeof(*ops),
				 CW_REC_COMM_OPS, 0, CW_REC_COMM_OPS, ops);
	if (r < 0)
		return r;
	for (size_t i = 0; i < CW_REC_COMM_OPS; i++)
		if (cw_record_op_is_of(comm, &ops[i]))
			ops[n++] = ops[i];
	*ret_n = sort_unique(ops, n);
	return 0;
}

enum cw_progress cw_record_progress_of(const struct cw_record *rec,
				       const struct cw_record_comm *comm, uint16_t slot,
				       uint16_t flags, uint64_t op_index)
{
	bool is_untracked = (flags & CW_OPF_UNTRACKED) && !cw_rec_slot_is_written(slot) &&
			    slot != CW_REC_NO_SLOT;
	const struct cw_record_slot *s;
	uint64_t before = op_index;

	if (flags & (CW_OPF_QUEUED | CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_NO_COUNT))
		return CW_PROGRESS_UNKNOWN;
	if (is_untracked) {
		before = op_index - cw_rec_slot_since(slot);
		slot = cw_rec_slot_of(slot);
	}
	if (slot >= rec->n_slots)
		return CW_PROGRESS_UNKNOWN;
	s = &rec->slots[slot];
	/*
	 * We do not know the progress in two cases. The slot may belong to another comm now. Or the
	 * slot's word names an op that the rank has not entered, so the word is wrong.
	 */
	if (s->comm_plus_1 != comm->index + 1 || s->comm_generation != comm->entry.generation ||
	    s->reached > comm->entry.op_index)
		return CW_PROGRESS_UNKNOWN;
	if (op_index <= s->completed)
		return CW_PROGRESS_COMPLETED;
	if (!is_untracked)
		return op_index <= s->reached ? CW_PROGRESS_REACHED : CW_PROGRESS_ENQUEUED;
	/* The stream has reached a later op, so it has completed this one. */
	if (op_index <= s->reached)
		return CW_PROGRESS_COMPLETED;
	return before > s->completed ? CW_PROGRESS_ENQUEUED : CW_PROGRESS_UNKNOWN;
}

static int32_t peer_or_none(const struct cw_rec_op *op, bool wanted)
{
	return wanted && op->root_or_peer >= 0 ? op->root_or_peer : CW_PEER_NONE;
}

static bool kind_has_peer(unsigned kind)
{
	return cw_op_is_p2p(kind) || (kind >= CW_OP_PUT_SIGNAL && kind <= CW_OP_WAIT_SIGNAL);
}

void cw_record_convert(const struct cw_record *rec, const struct cw_record_comm *comm,
		       const struct cw_rec_op *from, struct cw_record_op *to)
{
	bool returned = from->flags & CW_OPF_RETURNED;
	enum cw_progress progress =
		cw_record_progress_of(rec, comm, from->progress_slot, from->flags, from->op_index);

	/* Before its call returns, an op may not be enqueued yet. */
	if (!returned && progress == CW_PROGRESS_ENQUEUED)
		progress = CW_PROGRESS_UNKNOWN;
	*to = (struct cw_record_op){
		.kind = from->kind,
		.dtype = from->dtype,
		.redop = from->redop,
		.progress = (uint8_t)progress,
		.flags = from->flags,
		.result = returned ? from->result : 0,
		.root = peer_or_none(from, cw_op_has_root(from->kind)),
		.peer = peer_or_none(from, kind_has_peer(from->kind)),
		.count = from->count,
		.bytes = from->bytes,
		.coll_seq = cw_op_is_collective(from->kind) || from->kind == CW_OP_GRAPH_LAUNCH
				    ? from->seq
				    : 0,
		.p2p_seq = cw_op_is_p2p(from->kind) ? from->seq : 0,
		.op_index = from->op_index,
		.group_id = from->group_id,
		.stream = from->stream,
		.tid = from->tid,
		.stack = from->stack_id,
		.enter_mono_ns = cw_record_time(rec, from->enter_ns),
		.return_mono_ns = returned ? cw_record_time(rec, from->return_ns) : 0,
	};
}

bool cw_record_bulk_read(const struct cw_record *rec, uint64_t ticket, struct cw_rec_op *ret)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_RING];

	return s->count != 0 &&
	       cw_record_read_slots(rec, s->offset, s->entry_bytes, s->count,
				    (uint32_t)(ticket % s->count), 1, ret) == 0 &&
	       ret->publish == ticket + 1;
}

/* Appends the comm's ops from the bulk ring that are older than `before`, in the order of slots. */
static int read_bulk_ring(const struct cw_record *rec, const struct cw_record_comm *comm,
			  uint64_t before, struct cw_rec_op *ops, size_t *n)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_RING];
	struct cw_rec_op chunk[CW_RECORD_CHUNK];
	int r;

	for (uint32_t first = 0, len; first < s->count; first += len) {
		len = s->count - first < CW_RECORD_CHUNK ? s->count - first : CW_RECORD_CHUNK;
		r = cw_record_read_slots(rec, s->offset, s->entry_bytes, s->count, first, len,
					 chunk);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < len; i++)
			if (cw_record_op_is_of(comm, &chunk[i]) && chunk[i].op_index < before)
				ops[(*n)++] = chunk[i];
	}
	return 0;
}

/* Converts the newest max ops. A graph launch expands to many ops. */
static void convert_newest(const struct cw_record *rec, const struct cw_record_comm *comm,
			   const struct cw_rec_op *found, size_t n, struct cw_record_op *ops,
			   size_t max, size_t *ret_n, size_t *ret_first)
{
	uint64_t total = 0, skip;
	size_t first = n, kept = 0;

	while (first > 0 && total < max)
		total += cw_record_replay_count(rec, comm, &found[--first]);
	skip = total > max ? total - max : 0;
	for (size_t i = first; i < n; i++) {
		kept += cw_record_replay_expand(rec, comm, &found[i], skip, &ops[kept], max - kept);
		skip = 0;
	}
	*ret_n = kept;
	*ret_first = first;
}

int cw_record_window(struct cw_record *rec, const struct cw_record_comm *comm,
		     struct cw_record_op *ops, size_t max, size_t *ret_n, uint64_t *ret_lost)
{
	size_t capacity = CW_REC_COMM_OPS + rec->sections[CW_REC_SECTION_RING].count;
	_cleanup_(freep) struct cw_rec_op *found = malloc(capacity * sizeof(*found));
	size_t n, first;
	int r;

	if (!found)
		return -ENOMEM;
	r = cw_record_read_comm_ring(rec, comm, found, &n);
	if (r < 0)
		return r;
	if (max > n && (n == 0 || found[0].op_index > 1)) {
		r = read_bulk_ring(rec, comm, n ? found[0].op_index : UINT64_MAX, found, &n);
		if (r < 0)
			return r;
		n = sort_unique(found, n);
	}
	convert_newest(rec, comm, found, n, ops, max, ret_n, &first);
	*ret_lost = n > first ? found[first].op_index - 1 : comm->entry.op_index;
	return 0;
}

/* Reads the current identity part of the comm's entry. */
static int read_entry(const struct cw_record *rec, const struct cw_record_comm *comm,
		      struct cw_rec_comm *ret)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_COMMS];
	int r;

	r = cw_record_pread(rec, ret, CW_RECORD_IDENTITY_BYTES,
			    s->offset + (uint64_t)comm->index * s->entry_bytes);
	if (r < 0)
		return r;
	return ret->generation == comm->entry.generation && ret->comm_id == comm->entry.comm_id
		       ? 0
		       : -ESTALE;
}

/*
 * Returns whether the checkpoint is in use and the same in two reads. The agent clears coll_seq
 * before it changes a hash, and sets coll_seq afterwards. Memory therefore never holds an old
 * number with a new hash. A single read may still combine the two, but a second read cannot produce
 * the same combination.
 */
static bool is_whole(const struct cw_rec_checkpoint *a, const struct cw_rec_checkpoint *b)
{
	return a->coll_seq && a->coll_seq == b->coll_seq && a->hash == b->hash;
}

_Static_assert(CW_REC_CHECKPOINTS == CW_CHECKPOINTS_KEPT, "a slot for each");

/*
 * The last refresh has read the entry once. We read it once more, and a third time if the agent has
 * stored a checkpoint since.
 */
int cw_record_checkpoints(const struct cw_record *rec, const struct cw_record_comm *comm,
			  struct cw_checkpoint ret[CW_RECORD_CHECKPOINTS], size_t *ret_n)
{
	struct cw_checkpoint whole[CW_CHECKPOINTS_KEPT] = { 0 };
	const struct cw_rec_comm *first = &comm->entry;
	struct cw_rec_comm second, third;
	int r;

	r = read_entry(rec, comm, &second);
	if (r == 0 &&
	    memcmp(first->checkpoints, second.checkpoints, sizeof(second.checkpoints)) != 0) {
		r = read_entry(rec, comm, &third);
		first = &third;
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < CW_REC_CHECKPOINTS; i++) {
		const struct cw_rec_checkpoint *c = &first->checkpoints[i];

		if (is_whole(c, &second.checkpoints[i]))
			whole[i] = (struct cw_checkpoint){ c->coll_seq, c->hash };
	}
	*ret_n = cw_checkpoints_newest(whole, ret);
	return 0;
}

static bool is_block_of(const struct cw_record_comm *comm, const struct cw_rec_p2p_block *block)
{
	return block->comm_plus_1 == comm->index + 1 &&
	       block->comm_generation == comm->entry.generation;
}

/* Returns whether the counts of all peers add up to the totals in the entry. */
static bool sums_up(const struct cw_rec_comm *entry, const struct cw_rec_p2p_block *block)
{
	uint64_t sum[2] = { 0 };

	for (size_t i = 0; i < CW_REC_P2P_PEERS; i++)
		for (unsigned d = 0; d < 2; d++)
			sum[d] += block->peers[i].count[d];
	return sum[0] == entry->p2p_total[0] && sum[1] == entry->p2p_total[1];
}

/*
 * Reads the block twice. The agent stores a count, its hash and the communicator's total one after
 * the other. We read the total first. The hashes match the counts if the counts add up to the total
 * and both reads agree.
 */
static int read_block(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t offset,
		      struct cw_rec_p2p_block two[2], bool *ret_is_whole)
{
	struct cw_rec_comm entry;
	int r = read_entry(rec, comm, &entry);

	for (unsigned i = 0; i < 2 && r == 0; i++)
		r = cw_record_pread(rec, &two[i], sizeof(two[i]), offset);
	*ret_is_whole =
		r == 0 && !memcmp(&two[0], &two[1], sizeof(two[0])) && sums_up(&entry, &two[0]);
	return r;
}

int cw_record_p2p(struct cw_record *rec, const struct cw_record_comm *comm,
		  struct cw_p2p_peer *peers, size_t max, size_t *ret_n)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_P2P];
	_cleanup_(freep) struct cw_rec_p2p_block *block = NULL;
	uint64_t offset;
	bool is_whole;
	size_t n = 0;
	int r;

	*ret_n = 0;
	if (comm->entry.p2p_block == 0 || comm->entry.p2p_block > s->count)
		return 0;
	block = malloc(2 * sizeof(*block));
	if (!block)
		return -ENOMEM;
	offset = s->offset + (uint64_t)(comm->entry.p2p_block - 1) * s->entry_bytes;
	r = read_block(rec, comm, offset, block, &is_whole);
	if (r < 0)
		return r;
	for (size_t i = 0; i < CW_REC_P2P_PEERS && n < max; i++)
		if (block->peers[i].peer_plus_1 &&
		    block->peers[i].peer_plus_1 <= comm->entry.nranks)
			peers[n++] = (struct cw_p2p_peer){
				.peer = block->peers[i].peer_plus_1 - 1,
				.sends = block->peers[i].count[0],
				.recvs = block->peers[i].count[1],
				.send_hash = is_whole ? block->peers[i].hash[0] : 0,
				.recv_hash = is_whole ? block->peers[i].hash[1] : 0
			};
	/*
	 * Another comm may have taken the block during the copy. So we check the owner of the block
	 * afterwards.
	 */
	r = cw_record_pread(rec, block, offsetof(struct cw_rec_p2p_block, peers), offset);
	if (r < 0)
		return r;
	if (is_block_of(comm, block))
		*ret_n = n;
	return 0;
}
