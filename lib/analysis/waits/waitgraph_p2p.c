/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives wait for their counterparts, which we find by counting. The n-th send from a
 * to b meets the n-th receive that b posts for a, and other ops in between do not matter. NCCL
 * matches messages in FIFO order per source and destination.
 *
 * A counterpart cannot start while its peer waits in an earlier op. The peer then counts as
 * missing, and the gate of the earlier op gives the reason. So a ring of blocking sends becomes a
 * cycle, although every send has its receive.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/align/messages.h"
#include "analysis/waits/waitgraph_builder.h"

/*
 * THERE: the peer has posted the counterpart, and its device has reached it. BEHIND: the peer has
 * posted the counterpart, but probably behind an op in which the peer waits. UNLISTED: the peer has
 * not posted the counterpart, or its recording omits it because it has completed.
 */
enum counterpart { THERE, MISSING, BEHIND, UNLISTED, NOT_VISIBLE };

/*
 * Returns the n-th op of `kind` to or from `peer`. NULL = the op is not among the member's known
 * ops.
 */
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

/*
 * True if the member's counters show that its device has completed the op. The daemon reads the
 * counters after the window, so they may be newer than the op in the window.
 */
static bool has_passed(const struct cw_snap_member *m, const struct cw_op *op)
{
	if (!(m->known & CW_KNOWN_COMPLETED) || op->op_index > m->op_index)
		return false;
	return !m->pending ||
	       (op->op_index < m->pending->op_index && !waitgraph_same_launch(m->pending, op));
}

/*
 * Finds out whether the counterpart of member `me`'s n-th send to `peer`, or receive from it, is
 * there. The counterpart is there if the peer has posted it and the peer's device has reached it.
 * If the device has not reached it yet, it still counts as there, unless we know that something
 * blocks the device before it.
 */
static enum counterpart find_counterpart(const struct builder *b, uint32_t me, unsigned kind,
					 uint32_t peer, uint64_t n)
{
	const struct cw_snap_member *m = &b->c->members[peer];
	const struct cw_op *op, *pending;
	unsigned other = kind == CW_OP_SEND ? CW_OP_RECV : CW_OP_SEND;
	uint32_t flags = b->positions[peer].flags;
	uint64_t count = 0;

	if (!(flags & (POS_SEEN | POS_DEAD)))
		return NOT_VISIBLE;
	if (m->known & CW_KNOWN_P2P) {
		const struct cw_p2p_peer *e = messages_with(m, me);

		count = !e ? 0 : other == CW_OP_SEND ? e->sends : e->recvs;
		if (count < n)
			return b->c->lists_open_only ? UNLISTED : MISSING;
	} else if (flags & POS_DEAD) {
		return MISSING;
	}
	pending = m->pending;
	op = find_op(m, other, me, n);
	if (!op && !(m->known & CW_KNOWN_P2P))
		return NOT_VISIBLE;
	if (flags & POS_DEAD)
		return op && op->progress == CW_PROGRESS_COMPLETED ? THERE : MISSING;
	/*
	 * The peer's node is silent, so only a completed op proves that the counterpart is there.
	 */
	if (flags & POS_STALE)
		return op && (op->progress == CW_PROGRESS_COMPLETED || has_passed(m, op)) ? THERE
											  : MISSING;
	if (!op) {
		/*
		 * The peer has posted the counterpart, but the window does not show it. It is most
		 * likely behind the pending op in two cases: the peer waits in the pending op, or
		 * its device has not reached that op. In both cases the counterpart must be among
		 * the ops posted since the pending one. If it were in front, the two halves would
		 * have met. A later op of its own direction cannot block it, because ops of one
		 * direction keep their order.
		 */
		bool is_unreached = (m->known & CW_KNOWN_REACHED) && pending &&
				    pending->progress == CW_PROGRESS_ENQUEUED &&
				    (pending->flags & CW_OPF_RETURNED);
		bool is_later = pending && pending->kind == other && pending->peer == (int32_t)me &&
				pending->p2p_seq > n;

		return ((flags & POS_WAITS) || is_unreached) && pending &&
				       count - n + 1 < m->pending_count && !is_later
			       ? BEHIND
			       : THERE;
	}
	if (op->progress == CW_PROGRESS_REACHED || op->progress == CW_PROGRESS_COMPLETED ||
	    has_passed(m, op))
		return THERE;
	/*
	 * The daemon reads the counters after the window, so they may show that the op's launch has
	 * started.
	 */
	if (pending && pending->progress == CW_PROGRESS_REACHED &&
	    waitgraph_same_launch(pending, op))
		return THERE;
	if (op->progress == CW_PROGRESS_ENQUEUED && (op->flags & CW_OPF_RETURNED))
		return MISSING;
	/* Without progress writes, an older op that has not returned blocks this op. */
	return pending && pending->op_index < op->op_index && !waitgraph_same_launch(pending, op)
		       ? MISSING
		       : THERE;
}

static void note_counterpart(struct builder *b, struct gate *gate, uint32_t me,
			     const struct cw_op *op)
{
	uint32_t peer = (uint32_t)op->peer;

	/* A send of any peer would do. We only know that no peer has sent yet. */
	if (op->peer == CW_PEER_NONE)
		gate->n_unseen++;
	if (op->peer < 0 || peer >= b->c->nranks || peer == me)
		return;
	switch (find_counterpart(b, me, op->kind, peer, op->p2p_seq)) {
	case THERE:
		return;
	case NOT_VISIBLE: /* we count a peer once per gate, however many ops wait for it */
		if (b->unseen_at[peer] != b->g->n_gates)
			gate->n_unseen++;
		b->unseen_at[peer] = b->g->n_gates;
		return;
	case BEHIND: /* we only infer that the peer posts the counterpart after its current call, so
			this is not a proof */
		gate->n_soft++;
		break;
	case UNLISTED:
		gate->n_unlisted++;
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

/* Returns the first known op with the number op_index or a later one; NULL = none. */
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
 * Notes the counterparts of `pending` and of the ops launched together with it. `pending` is the
 * oldest of these ops, and the others follow it in the comm's order. If some of these ops are
 * unknown, a further peer may be missing. We then count one member as not visible.
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

/* Adds the gate of the pending op and of all incomplete ops launched together with it. */
static int add_gate(struct builder *b, uint32_t me)
{
	const struct cw_snap_member *m = &b->c->members[me];
	const struct cw_op *pending = b->positions[me].op;
	struct gate *gate = builder_add_gate(b, GATE_P2P, pending->p2p_seq, pending->kind);
	uint32_t n = 0;

	if (!gate)
		return -ENOMEM;
	gate->missing = cw_arena_new_array(b->arena, uint32_t, (size_t)m->n_window + 2);
	if (!gate->missing)
		return -ENOMEM;
	note_launch(b, gate, me, pending);
	/* A peer counts once, however many of its counterparts are missing. */
	if (gate->n_missing > 1)
		qsort(gate->missing, gate->n_missing, sizeof(*gate->missing), compare_ranks);
	for (uint32_t i = 0; i < gate->n_missing; i++)
		if (!n || gate->missing[i] != gate->missing[n - 1])
			gate->missing[n++] = gate->missing[i];
	gate->n_missing = gate->n_missing_all = n;
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
