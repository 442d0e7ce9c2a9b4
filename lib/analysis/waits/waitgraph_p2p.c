/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives wait for their counterparts, which are known by counting: the n-th send from a
 * to b meets the n-th receive b posts for a, whatever else either does (NCCL matches in FIFO order
 * per source and destination).
 *
 * A counterpart that was posted behind an op that has not completed does not help: the peer then
 * counts as missing too, and its own gate says why. That is how a ring of blocking sends becomes a
 * cycle although every send has its receive.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/align/messages.h"
#include "analysis/waits/waitgraph_builder.h"

enum counterpart { THERE, MISSING, BEHIND, NOT_VISIBLE };

/* The n-th op of `kind` to or from `peer`, where the member's ops at hand include it. */
static const struct cw_op *find_op(const struct cw_snap_member *m, unsigned kind, uint32_t peer,
				   uint64_t n)
{
	for (uint32_t i = m->n_window; i-- > 0;) {
		const struct cw_op *op = &m->window[i];

		if (op->kind == kind && op->peer == (int32_t)peer && op->p2p_seq == n)
			return op;
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct cw_op *op = i == 0 ? m->pending : m->last;

		if (op && op->kind == kind && op->peer == (int32_t)peer && op->p2p_seq == n)
			return op;
	}
	return NULL;
}

const struct cw_op *waitgraph_counterpart(const struct cw_snap_comm *c, uint32_t me,
					  const struct cw_op *op, uint32_t *ret_peer)
{
	uint32_t peer = (uint32_t)op->peer;

	if (!cw_op_is_p2p(op->kind) || op->peer < 0 || peer >= c->nranks || peer == me ||
	    c->members[peer].rank == CW_SNAP_NONE)
		return NULL;
	*ret_peer = peer;
	return find_op(&c->members[peer], op->kind == CW_OP_SEND ? CW_OP_RECV : CW_OP_SEND, me,
		       op->p2p_seq);
}

bool waitgraph_same_launch(const struct cw_op *a, const struct cw_op *b)
{
	return a->op_index == b->op_index || ((a->flags & b->flags & CW_OPF_GROUPED) &&
					      a->group_id && a->group_id == b->group_id);
}

/* The peer waits in a later one of the same: these come in order. */
static bool is_past(const struct cw_op *pending, unsigned kind, uint32_t me, uint64_t n)
{
	return pending->kind == kind && pending->peer == (int32_t)me && pending->p2p_seq > n;
}

/* Its device has come to none of those that are open: what holds it up is elsewhere. */
static bool is_held_up_before(const struct cw_snap_member *m)
{
	return (m->known & CW_KNOWN_REACHED) && m->pending &&
	       m->pending->progress == CW_PROGRESS_ENQUEUED &&
	       (m->pending->flags & CW_OPF_RETURNED);
}

/*
 * The counterpart was posted and is not at hand. If it is among the ops posted since the one the
 * peer waits in, or has not come to, it is most likely behind that, else it would have been met.
 */
static bool may_be_behind(const struct builder *b, uint32_t peer, unsigned kind, uint32_t me,
			  uint64_t n)
{
	const struct cw_snap_member *m = &b->c->members[peer];
	const struct cw_p2p_peer *e = messages_with(m, me);
	uint64_t count = !e ? 0 : kind == CW_OP_SEND ? e->sends : e->recvs;

	return ((b->positions[peer].flags & POS_WAITS) || is_held_up_before(m)) && m->pending &&
	       n <= count && count - n + 1 < m->pending_count && !is_past(m->pending, kind, me, n);
}

/*
 * The window was read before the counters: these say that the device is past the op, whatever that
 * says of it.
 */
static bool has_passed(const struct cw_snap_member *m, const struct cw_op *op)
{
	if (!(m->known & CW_KNOWN_COMPLETED) || op->op_index > m->op_index)
		return false;
	return !m->pending ||
	       (op->op_index < m->pending->op_index && !waitgraph_same_launch(m->pending, op));
}

/* Likewise, that the device has come to the launch that the op is part of. */
static bool has_been_reached(const struct cw_snap_member *m, const struct cw_op *op)
{
	return m->pending && m->pending->progress == CW_PROGRESS_REACHED &&
	       waitgraph_same_launch(m->pending, op);
}

/* The peer has posted the counterpart; has its device come to it? */
static enum counterpart posted(const struct builder *b, uint32_t peer, unsigned kind, uint32_t me,
			       uint64_t n)
{
	const struct cw_snap_member *m = &b->c->members[peer];
	const struct cw_op *op = find_op(m, kind, me, n);

	if (b->positions[peer].flags & POS_DEAD)
		return op && op->progress == CW_PROGRESS_COMPLETED ? THERE : MISSING;
	/* It may have been there when its node was heard last; that it is there nobody says. */
	if (b->positions[peer].flags & POS_STALE)
		return op && (op->progress == CW_PROGRESS_COMPLETED || has_passed(m, op)) ? THERE
											  : MISSING;
	if (!op)
		return may_be_behind(b, peer, kind, me, n) ? BEHIND : THERE;
	if (op->progress == CW_PROGRESS_REACHED || op->progress == CW_PROGRESS_COMPLETED ||
	    has_passed(m, op) || has_been_reached(m, op))
		return THERE;
	if (op->progress == CW_PROGRESS_ENQUEUED && (op->flags & CW_OPF_RETURNED))
		return MISSING;
	/* Not tracked: the oldest op that has not returned stands in its way, unless it is it. */
	if (m->pending && m->pending->op_index < op->op_index &&
	    !waitgraph_same_launch(m->pending, op))
		return MISSING;
	return THERE;
}

/* The n-th send (or receive) of member `me` to (from) `peer`: is the other half there? */
static enum counterpart find_counterpart(const struct builder *b, uint32_t me, unsigned kind,
					 uint32_t peer, uint64_t n)
{
	const struct cw_snap_member *m = &b->c->members[peer];
	unsigned other = kind == CW_OP_SEND ? CW_OP_RECV : CW_OP_SEND;
	const struct cw_p2p_peer *e;
	uint64_t count;

	if (!(b->positions[peer].flags & (POS_SEEN | POS_DEAD)))
		return NOT_VISIBLE;
	if (!(m->known & CW_KNOWN_P2P)) {
		if (b->positions[peer].flags & POS_DEAD)
			return MISSING;
		return find_op(m, other, me, n) ? posted(b, peer, other, me, n) : NOT_VISIBLE;
	}
	e = messages_with(m, me);
	count = !e ? 0 : other == CW_OP_SEND ? e->sends : e->recvs;
	return count < n ? MISSING : posted(b, peer, other, me, n);
}

/* One peer that is not visible is one, however many of the member's ops wait for it. */
static void note_unseen(struct builder *b, struct gate *gate, uint32_t peer)
{
	if (b->unseen_at[peer] != b->g->n_gates)
		gate->n_unseen++;
	b->unseen_at[peer] = b->g->n_gates;
}

static void note_counterpart(struct builder *b, struct gate *gate, uint32_t me,
			     const struct cw_op *op)
{
	uint32_t peer = (uint32_t)op->peer;

	/* Whoever sends first would do: that nobody has is all that is known. */
	if (op->peer == CW_PEER_NONE)
		gate->n_unseen++;
	if (op->peer < 0 || peer >= b->c->nranks || peer == me)
		return;
	switch (find_counterpart(b, me, op->kind, peer, op->p2p_seq)) {
	case THERE:
		return;
	case NOT_VISIBLE:
		note_unseen(b, gate, peer);
		return;
	case BEHIND: /* inferred: no proof */
		gate->n_soft++;
		break;
	case MISSING:
		break;
	}
	gate->missing[gate->n_missing++] = b->c->members[peer].rank;
}

static int compare_ranks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* A peer counts once, however many of its counterparts are missing. */
static void drop_repetitions(struct gate *gate)
{
	uint32_t n = 0;

	if (gate->n_missing < 2)
		return;
	qsort(gate->missing, gate->n_missing, sizeof(*gate->missing), compare_ranks);
	for (uint32_t i = 0; i < gate->n_missing; i++)
		if (!n || gate->missing[i] != gate->missing[n - 1])
			gate->missing[n++] = gate->missing[i];
	gate->n_missing = n;
}

/* The first op at hand with that number or a later one; NULL = none. */
static const struct cw_op *first_op_from(const struct cw_snap_member *m, uint64_t op_index)
{
	uint32_t lo = 0, hi = m->n_window;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->window[mid].op_index < op_index)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < m->n_window)
		return &m->window[lo];
	return m->last && m->last->op_index >= op_index ? m->last : NULL;
}

/*
 * The ops launched together with `pending`, which is the oldest of them. They follow each other in
 * the comm's order. Where some are not at hand, it is not known what those wait for, and somebody
 * may be missing there.
 */
static void note_launch(struct builder *b, struct gate *gate, uint32_t me,
			const struct cw_op *pending)
{
	const struct cw_snap_member *m = &b->c->members[me];
	uint64_t next = pending->op_index + 1;
	const struct cw_op *op;

	note_counterpart(b, gate, me, pending);
	if (!(pending->flags & CW_OPF_GROUPED) || !pending->group_id)
		return;
	while ((op = first_op_from(m, next)) != NULL) {
		if (op->op_index > next)
			gate->n_unseen++;
		if (!waitgraph_same_launch(op, pending))
			return;
		if (cw_op_is_p2p(op->kind) && op->progress != CW_PROGRESS_COMPLETED)
			note_counterpart(b, gate, me, op);
		next = op->op_index + 1;
	}
	if (next <= m->op_index)
		gate->n_unseen++;
}

/* All ops launched together with the pending one that have not completed. */
static int add_gate(struct builder *b, uint32_t me)
{
	const struct cw_snap_member *m = &b->c->members[me];
	const struct cw_op *pending = b->positions[me].op;
	struct gate *gate = builder_add_gate(b, GATE_P2P, pending->p2p_seq, pending->kind);

	if (!gate)
		return -ENOMEM;
	gate->missing = cw_arena_new_array(b->arena, uint32_t, (size_t)m->n_window + 2);
	if (!gate->missing)
		return -ENOMEM;
	note_launch(b, gate, me, pending);
	drop_repetitions(gate);
	gate->n_missing_all = gate->n_missing;
	builder_note_waiter(b, gate, me);
	return 0;
}

int waitgraph_add_p2p(struct builder *b)
{
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];

		if (!(p->flags & POS_WAITS) || (p->flags & POS_INIT) || !p->op ||
		    !cw_op_is_p2p(p->op->kind))
			continue;
		if (add_gate(b, m) < 0)
			return -ENOMEM;
	}
	return 0;
}
