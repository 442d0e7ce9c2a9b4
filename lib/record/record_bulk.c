/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index over the bulk ring.
 *
 * A training job's host runs hundreds of ops ahead of the device. The oldest incomplete op is
 * therefore often older than the 32 ops in the comm's own ring. Each sample searches for that op in
 * each comm. A scan of the whole bulk ring (1 MiB) per sample would cost the daemon several percent
 * of a core. Instead we read every slot once, when it is new, and chain the ops of one comm from
 * newest to oldest.
 *
 * The index stores only facts that do not change. Flags do change, when an op returns or when its
 * group is launched or dropped. We read flags again as long as they are not final.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_internal.h"

static const struct cw_record_section *ring_of(const struct cw_record *rec)
{
	return &rec->sections[CW_REC_SECTION_RING];
}

static int make_index(struct cw_record *rec)
{
	if (rec->bulk)
		return 0;
	rec->bulk_last_plus_1 =
		calloc(rec->sections[CW_REC_SECTION_COMMS].count, sizeof(*rec->bulk_last_plus_1));
	if (!rec->bulk_last_plus_1)
		return -ENOMEM;
	rec->bulk = calloc(ring_of(rec)->count, sizeof(*rec->bulk));
	if (!rec->bulk) {
		free(rec->bulk_last_plus_1);
		rec->bulk_last_plus_1 = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void forget_index(struct cw_record *rec)
{
	memset(rec->bulk, 0, ring_of(rec)->count * sizeof(*rec->bulk));
	memset(rec->bulk_last_plus_1, 0,
	       rec->sections[CW_REC_SECTION_COMMS].count * sizeof(*rec->bulk_last_plus_1));
	rec->bulk_next = 0;
}

static void add_op(struct cw_record *rec, uint64_t ticket, const struct cw_rec_op *op)
{
	struct cw_record_bulk_op *to = &rec->bulk[ticket % ring_of(rec)->count];

	*to = (struct cw_record_bulk_op){ 0 };
	if (op->publish != ticket + 1 || op->comm >= rec->sections[CW_REC_SECTION_COMMS].count)
		return;
	*to = (struct cw_record_bulk_op){
		.ticket_plus_1 = ticket + 1,
		.prev_plus_1 = rec->bulk_last_plus_1[op->comm],
		.op_index = op->op_index,
		.seq = op->seq,
		.count = op->count,
		.root_or_peer = op->root_or_peer,
		.flags = op->flags,
		.progress_slot = op->progress_slot,
		.generation = op->comm_generation,
		.kind = op->kind,
	};
	rec->bulk_last_plus_1[op->comm] = ticket + 1;
}

/* Indexes the slots written since the last call, at most the whole ring. */
static int catch_up(struct cw_record *rec)
{
	const struct cw_record_section *s = ring_of(rec);
	struct cw_rec_op chunk[CW_RECORD_CHUNK];
	uint64_t end;
	int r;

	r = cw_record_pread(rec, &end, sizeof(end), offsetof(struct cw_rec_header, ring_ticket));
	if (r < 0)
		return r;
	if (end < rec->bulk_next)
		forget_index(rec); /* no agent counts backwards: index the ring from scratch */
	if (end > s->count && rec->bulk_next < end - s->count)
		rec->bulk_next = end - s->count;
	while (rec->bulk_next < end) {
		uint32_t first = (uint32_t)(rec->bulk_next % s->count);
		uint64_t n = end - rec->bulk_next;

		if (n > CW_RECORD_CHUNK)
			n = CW_RECORD_CHUNK;
		if (n > s->count - first)
			n = s->count - first;
		r = cw_record_read_slots(rec, s->offset, s->entry_bytes, s->count, first,
					 (uint32_t)n, chunk);
		if (r < 0)
			return r;
		for (uint64_t i = 0; i < n; i++) {
			/*
			 * We read an unpublished op at the next call of this function. If more than
			 * CW_RECORD_CHUNK ops follow it, the thread that reserved the ticket must
			 * have died. We then skip the op.
			 */
			if (chunk[i].publish != rec->bulk_next + 1 &&
			    end - rec->bulk_next <= CW_RECORD_CHUNK)
				return 0;
			add_op(rec, rec->bulk_next, &chunk[i]);
			rec->bulk_next++;
		}
	}
	return 0;
}

static bool is_settled(const struct cw_record_bulk_op *op)
{
	return (op->flags & CW_OPF_RETURNED) && !(op->flags & CW_OPF_QUEUED);
}

/*
 * Updates the op's flags. Returns false if our copy may be outdated: the op is gone, or the budget
 * for reads is used up.
 */
static bool settle(struct cw_record *rec, uint64_t ticket, struct cw_record_bulk_op *op)
{
	struct cw_rec_op fresh;

	if (is_settled(op))
		return true;
	if (rec->rereads_left == 0)
		return false;
	rec->rereads_left--;
	if (!cw_record_bulk_read(rec, ticket, &fresh))
		return false;
	op->flags = fresh.flags;
	op->seq = fresh.seq;
	op->progress_slot = fresh.progress_slot;
	return true;
}

int cw_record_bulk_walk(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t before,
			cw_record_bulk_fn fn, void *user)
{
	const struct cw_record_section *s = ring_of(rec);
	uint64_t at;
	int r;

	if (s->count == 0)
		return 0;
	r = make_index(rec);
	if (r == 0)
		r = catch_up(rec);
	if (r < 0)
		return r;
	/*
	 * Tickets decrease along the chain. A slot with another ticket was reused, so the chain
	 * ends.
	 */
	for (at = rec->bulk_last_plus_1[comm->index]; at;) {
		struct cw_record_bulk_op *op = &rec->bulk[(at - 1) % s->count];

		if (op->ticket_plus_1 != at || op->generation != (uint16_t)comm->entry.generation)
			return 0;
		if (op->op_index && op->op_index < before) {
			if (!settle(rec, at - 1, op) || !fn(user, at - 1, op))
				return 0;
		}
		at = op->prev_plus_1;
	}
	return 0;
}
