/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skips stretches without trouble, so that a week of a large job takes seconds. The state
 * afterwards is that of a full run. Every time is later by the length of the stretch. The numbers
 * of each comm grow at its previous pace, equally for all members.
 *
 * Numbers jump by a multiple of the periods of rings and checkpoints.
 */
#include <stdlib.h>

#include "lab/vjob/cluster_state.h"
#include "model/signature.h"

/* A rank whose comms have all been idle for longer than this is not stepping. */
#define STEPPING_NS (20 * S)
#define NUMBERS_STEP (UINT64_C(8) << (3 * CW_CHECKPOINT_LEVELS))

_Static_assert(NUMBERS_STEP % SLOTS == 0 && NUMBERS_STEP % RING == 0, "found by number");

struct fast_forward {
	int64_t ns;
	uint64_t by; /* the increase of the current comm's numbers */
};

/* ---- is every rank fine? ---- */

static bool is_stepping(const struct rank *r)
{
	const struct cluster *c = r->c;
	bool moved = false;

	for (uint32_t f = 0; f < c->s->n_families; f++) {
		struct member *m = r->members[f];

		if (!m || !m->ring)
			continue;
		moved |= c->now_ns - m->moved_ns < STEPPING_NS;
		if (m->first_open <= m->op_index &&
		    c->now_ns - member_op(m, m->first_open)->enter_ns >= STEPPING_NS)
			return false;
	}
	return moved && !r->ended_ns && !r->is_frozen && !r->slow_ns && !r->barrier_member;
}

bool cluster_is_well(const struct cluster *c)
{
	for (uint32_t i = 0; i < c->s->n_faults; i++)
		if (fault_is_due(c, i))
			return false;
	for (uint32_t i = 0; i < c->n_nodes; i++)
		if (node_is_quiet(c, &c->nodes[i]))
			return false;
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		if (!is_stepping(&c->ranks[i]))
			return false;
	return !c->daemons_back_ns && !c->restart_ns &&
	       (!c->last_fault_ns || c->now_ns - c->last_fault_ns >= STEPPING_NS);
}

int64_t cluster_next_fault_ns(const struct cluster *c)
{
	int64_t next = SUITE_FOREVER;

	for (uint32_t i = 0; i < c->s->n_faults; i++) {
		int64_t at = CLUSTER_ORIGIN_NS + c->s->faults[i].at_ns;

		if (at > c->now_ns && at < next)
			next = at;
	}
	return next;
}

/* ---- fast-forwarding ---- */

static void later(int64_t *ns, const struct fast_forward *l)
{
	if (*ns)
		*ns += l->ns;
}

static void further(uint64_t *number, const struct fast_forward *l)
{
	if (*number)
		*number += l->by;
}

static void fast_forward_op(struct cw_op *op, const struct fast_forward *l)
{
	if (op->kind == CW_OP_NONE)
		return;
	later(&op->enter_ns, l);
	later(&op->return_ns, l);
	further(&op->coll_seq, l);
	further(&op->p2p_seq, l);
	further(&op->op_index, l);
}

static void fast_forward_view(struct view_member *v, const struct fast_forward *l)
{
	further(&v->m.coll_entered, l);
	further(&v->m.coll_returned, l);
	further(&v->m.coll_reached, l);
	further(&v->m.coll_completed, l);
	further(&v->m.op_index, l);
	further(&v->m.hash_seq, l);
	for (uint32_t i = 0; i < CW_SNAP_CHECKPOINTS; i++)
		further(&v->m.checkpoints[i].coll_seq, l);
	for (uint32_t i = 0; i < v->m.n_p2p; i++) {
		further(&v->m.p2p[i].sends, l);
		further(&v->m.p2p[i].recvs, l);
	}
	further(&v->m.sends, l);
	further(&v->m.recvs, l);
	later(&v->m.progress_ns, l);
	fast_forward_op(&v->pending, l);
	fast_forward_op(&v->last, l);
	further(&v->done, l);
	later(&v->done_ns, l);
}

static void fast_forward_member(struct member *m, const struct fast_forward *l)
{
	further(&m->entered, l);
	further(&m->returned, l);
	further(&m->reached, l);
	further(&m->completed, l);
	further(&m->sends, l);
	further(&m->recvs, l);
	for (uint32_t i = 0; i < CW_REC_CHECKPOINTS; i++)
		further(&m->checkpoints[i].coll_seq, l);
	for (uint32_t i = 0; m->peers && i < m->comm->nranks; i++) {
		further(&m->peers[i].sends, l);
		further(&m->peers[i].recvs, l);
	}
	for (uint32_t i = 0; m->ring && i < RING; i++) {
		fast_forward_op(&m->ring[i].op, l);
		further(&m->ring[i].call, l);
	}
	if (m->op_index)
		m->first_open += l->by;
	further(&m->calls, l);
	further(&m->op_index, l);
	further(&m->flow_op, l);
	later(&m->moved_ns, l);
	fast_forward_view(&m->view, l);
}

static void fast_forward_slots(struct comm *comm, const struct fast_forward *l)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot *slot = &comm->slots[i];

		further(&slot->seq, l);
		for (uint32_t m = 0; slot->op_indices && m < comm->nranks; m++)
			further(&slot->op_indices[m], l);
	}
	/* With SUITE_NCCL, other numbers decide, which do not change here. */
	for (struct half *h = comm->halves; h; h = h->next) {
		h->seq += l->by;
		h->op_index += l->by;
	}
}

static void fast_forward_comm(struct cluster *c, struct comm *comm, int64_t ns)
{
	const struct member *m = &comm->members[0];
	struct fast_forward l = { .ns = ns };

	if (m->op_index && c->now_ns > c->start_ns)
		l.by = (uint64_t)((double)m->op_index *
				  ((double)ns / (double)(c->now_ns - c->start_ns)));
	l.by -= l.by % NUMBERS_STEP;
	for (uint32_t i = 0; i < comm->nranks; i++) {
		struct rank *r = comm->members[i].rank;

		fast_forward_member(&comm->members[i], &l);
		for (uint32_t s = 0; s < STREAMS; s++)
			for (struct item *item = r->streams[s]; item; item = item->next)
				if (item->m == &comm->members[i])
					item->first_op += l.by;
		if (r->waiting && r->waiting->m == &comm->members[i])
			r->waiting->first_op += l.by;
	}
	fast_forward_slots(comm, &l);
}

void cluster_fast_forward(struct cluster *c, int64_t ns)
{
	struct fast_forward l = { .ns = ns };

	for (uint32_t i = 0; i < c->n_comms; i++)
		fast_forward_comm(c, &c->comms[i], ns);
	/*
	 * We move all events by the same amount, so the heap keeps its order. Faults keep their
	 * times.
	 */
	for (size_t i = 0; i < c->n_heap; i++)
		if (c->heap[i].kind != EVENT_FAULT)
			c->heap[i].at_ns += ns;
	events_reorder(c);
	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		struct rank *r = &c->ranks[i];

		later(&r->active_ns, &l);
		later(&r->call_ns, &l);
		later(&r->view.sampled_ns, &l);
		later(&r->view.host_activity_ns, &l);
		later(&r->view.host_call.enter_ns, &l);
	}
	c->now_ns += ns;
}
