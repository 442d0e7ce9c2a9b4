/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices. A stream is a queue, and the device reaches the op at its head. The op completes when
 * the necessary members have reached it, too. In this file all members complete at once. In
 * cluster_flow.c they complete as the data move.
 */
#include <stdlib.h>

#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"
#include "model/signature.h"

#define LATENCY_NS (30 * INT64_C(1000))
#define BYTES_PER_NS 50

struct cw_op *member_op(struct member *m, uint64_t op_index)
{
	return &m->ring[op_index & (RING - 1)].op;
}

/* True if the op is complete, or if it needs no work of the device. */
static bool is_closed(const struct cw_op *op)
{
	if (cw_op_blocks_host(op->kind))
		return op->flags & CW_OPF_RETURNED;
	return op->progress == CW_PROGRESS_COMPLETED ||
	       (op->flags & (CW_OPF_NO_COUNT | CW_OPF_DROPPED));
}

void member_advance(struct member *m)
{
	while (m->first_open <= m->op_index && is_closed(member_op(m, m->first_open)))
		m->first_open++;
}

/* ---- completion ---- */

static int64_t duration_of(const struct item *item)
{
	int64_t ns = item->ns;

	for (uint32_t i = 0; i < item->n_ops; i++)
		ns += (int64_t)(member_op(item->m, item->first_op + i)->bytes / BYTES_PER_NS);
	return ns + LATENCY_NS;
}

void device_part_done(struct item *item)
{
	if (--item->n_open == 0)
		cluster_at(item->rank->c, item->rank->c->now_ns + duration_of(item), EVENT_ITEM,
			   item->rank, item, 0);
}

static bool is_gone(const struct rank *r)
{
	return r->ended_ns != 0;
}

static const struct cw_op *op_in_slot(const struct comm *comm, const struct slot *slot, uint32_t m)
{
	return member_op(&comm->members[m], slot->op_indices[m]);
}

static uint64_t size_of(const struct cw_op *op)
{
	return cw_signature_is_bytewise(op->kind) ? op->bytes : op->count;
}

/*
 * Called when all members have come. If a member has another kind or root, no member finishes. If
 * one has another size, only the members with the smallest size finish. Another dtype or operator
 * only causes wrong data.
 */
static void settle(struct comm *comm, struct slot *slot)
{
	const struct cw_op *first = op_in_slot(comm, slot, 0);
	uint64_t least = UINT64_MAX;

	for (uint32_t m = 0; m < comm->nranks; m++) {
		const struct cw_op *op = op_in_slot(comm, slot, m);

		if (is_gone(comm->members[m].rank) || slot->items[m]->is_wedged ||
		    op->kind != first->kind || op->root != first->root)
			return;
		if (size_of(op) < least)
			least = size_of(op);
	}
	for (uint32_t m = 0; m < comm->nranks; m++)
		if (size_of(op_in_slot(comm, slot, m)) == least)
			device_part_done(slot->items[m]);
}

static void arrive(struct item *item, uint64_t op_index, uint64_t seq)
{
	struct comm *comm = item->m->comm;
	struct slot *slot = &comm->slots[seq % SLOTS];

	if (!slot->items) {
		slot->items = cw_or_exit(calloc(comm->nranks, sizeof(struct item *)));
		slot->op_indices = cw_or_exit(calloc(comm->nranks, sizeof(*slot->op_indices)));
	}
	if (slot->seq != seq) {
		slot->seq = seq;
		slot->n_arrived = 0;
	}
	slot->items[item->m->comm_rank] = item;
	slot->op_indices[item->m->comm_rank] = op_index;
	if (++slot->n_arrived == comm->nranks)
		settle(comm, slot);
}

/* ---- point to point ---- */

static struct half **find_half(struct comm *comm, uint32_t me, uint32_t peer, uint64_t seq,
			       bool is_send)
{
	struct half **h;

	for (h = &comm->halves; *h; h = &(*h)->next)
		if ((*h)->me == peer && (*h)->peer == me && (*h)->seq == seq &&
		    (*h)->is_send != is_send && !is_gone((*h)->item->rank))
			return h;
	return NULL;
}

/*
 * Matches a send with a receive. If the receive expects more data than the send has, the receive
 * never finishes, but the send does.
 */
static void match(struct half *h, struct item *item, const struct cw_op *op)
{
	bool is_send = op->kind == CW_OP_SEND;
	uint64_t sent = is_send ? op->bytes : h->bytes, wanted = is_send ? h->bytes : op->bytes;

	if (is_send || sent >= wanted)
		device_part_done(item);
	if (h->is_send || sent >= wanted)
		device_part_done(h->item);
}

static void arrive_p2p(struct item *item, const struct cw_op *op)
{
	struct comm *comm = item->m->comm;
	bool is_send = op->kind == CW_OP_SEND;
	uint32_t me = item->m->comm_rank, peer = (uint32_t)op->peer;
	struct half **other = find_half(comm, me, peer, op->p2p_seq, is_send), *h;

	if (other) {
		h = *other;
		*other = h->next;
		match(h, item, op);
		free(h);
		return;
	}
	h = cw_or_exit(calloc(1, sizeof(*h)));
	*h = (struct half){ .next = comm->halves,
			    .me = me,
			    .peer = peer,
			    .seq = op->p2p_seq,
			    .bytes = op->bytes,
			    .is_send = is_send,
			    .item = item,
			    .op_index = op->op_index };
	comm->halves = h;
}

/* ---- streams ---- */

void device_note_reached(const struct item *item)
{
	struct member *m = item->m;

	for (uint32_t i = 0; i < item->n_ops; i++) {
		struct cw_op *op = member_op(m, item->first_op + i);

		if (op->flags & CW_OPF_NO_COUNT)
			continue;
		op->progress = CW_PROGRESS_REACHED;
		if (op->coll_seq > m->reached)
			m->reached = op->coll_seq;
	}
	record_device(m, item->first_op + item->n_ops - 1, 0);
}

static void reach_ops(struct item *item)
{
	struct member *m = item->m;
	int64_t now = item->rank->c->now_ns;

	m->in_flight = item;
	m->moved_ns = now;
	/* We mark all ops first, because an op of the group may complete another one. */
	device_note_reached(item);
	if (item->rank->c->s->completion == SUITE_NCCL) {
		flow_begin(item);
		return;
	}
	for (uint32_t i = 0; i < item->n_ops; i++) {
		struct cw_op *op = member_op(m, item->first_op + i);

		if (op->flags & CW_OPF_NO_COUNT)
			continue;
		if (cw_op_is_p2p(op->kind))
			arrive_p2p(item, op);
		else
			arrive(item, op->op_index, op->coll_seq);
	}
}

/*
 * True if the item is the next one of its comm. The ops of a comm run in the order of their
 * launches, even on different streams.
 */
static bool is_its_turn(const struct item *item)
{
	return !item->m->in_flight && item->m->first_open >= item->first_op;
}

/*
 * Starts the head of a stream, unless an earlier op of the same comm still waits on another stream.
 */
static void try_reach(struct item *item)
{
	if (item->is_reached || is_gone(item->rank) || (item->m && !is_its_turn(item)))
		return;
	item->is_reached = true;
	if (item->m) {
		reach_ops(item);
	} else if (item->ns != SUITE_FOREVER) {
		cluster_at(item->rank->c, item->rank->c->now_ns + item->ns, EVENT_ITEM, item->rank,
			   item, 0);
	}
}

void device_enqueue(struct item *item)
{
	struct rank *r = item->rank;

	r->n_items++;
	if (r->tails[item->stream])
		r->tails[item->stream]->next = item;
	else
		r->streams[item->stream] = item;
	r->tails[item->stream] = item;
	if (r->streams[item->stream] == item)
		try_reach(item);
}

void device_kernel(struct rank *r, uint32_t stream, int64_t ns)
{
	struct item *item = cw_or_exit(calloc(1, sizeof(*item)));

	item->rank = r;
	item->stream = stream % STREAMS;
	item->ns = ns;
	device_enqueue(item);
}

static void complete_ops(struct item *item)
{
	struct member *m = item->m;

	m->in_flight = NULL;
	m->moved_ns = item->rank->c->now_ns;
	for (uint32_t i = 0; i < item->n_ops; i++) {
		struct cw_op *op = member_op(m, item->first_op + i);

		op->progress = CW_PROGRESS_COMPLETED;
		if (op->coll_seq > m->completed)
			m->completed = op->coll_seq;
	}
	record_device(m, 0, item->first_op + item->n_ops - 1);
	member_advance(m);
}

/* Called when the item at the head of its stream has finished. */
void device_on_item(struct item *item)
{
	struct rank *r = item->rank;

	if (is_gone(r))
		return;
	if (item->m)
		complete_ops(item);
	r->streams[item->stream] = item->next;
	if (!item->next)
		r->tails[item->stream] = NULL;
	r->n_items--;
	free(item);
	for (uint32_t i = 0; i < STREAMS; i++)
		if (r->streams[i])
			try_reach(r->streams[i]);
	host_on_device(r);
}
