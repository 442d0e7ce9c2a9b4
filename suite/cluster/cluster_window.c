/* SPDX-License-Identifier: Apache-2.0 */
/* Single ops as a leader sees them, and the windows of them that it has fetched. */
#include <errno.h>
#include <stdlib.h>

#include "suite/cluster/cluster_state.h"

#define WINDOW_FRESH_NS (5 * S)
/* Jobs of this many ranks are asked for all that is kept, larger ones for so many ops. */
#define SMALL_JOB 64u
#define WINDOW_OPS 64u

struct cw_op view_op(struct member *m, uint64_t op_index)
{
	struct cw_op op = *member_op(m, op_index);

	/* What a graph's launch stands for has the launch's number. */
	op.op_index = m->ring[op_index & (RING - 1)].call;
	/* Without progress words nobody knows more of an op than that its call came back. */
	if (m->rank->c->s->has_no_progress)
		op.progress = CW_PROGRESS_UNKNOWN;
	return op;
}

void view_to_leader(const struct cluster *c, const struct rank *r, struct cw_op *op)
{
	int64_t late = c->nodes[r->node].latency_ns;

	op->enter_ns += late;
	if (op->flags & CW_OPF_RETURNED)
		op->return_ns += late;
}

/* The window that was fetched, while it is true or fresh (as leader/job_window.c keeps it). */
bool window_holds(const struct cluster *c, struct member *m)
{
	const struct cw_snap_member *v = &m->view.m;

	if (!m->window)
		return false;
	if (!m->has_marks) {
		m->has_marks = true;
		m->mark_op = v->op_index;
		m->mark_returned = v->coll_returned;
		m->mark_completed = v->coll_completed;
	}
	return (m->mark_op == v->op_index && m->mark_returned == v->coll_returned &&
		m->mark_completed == v->coll_completed) ||
	       c->now_ns - m->window_ns < WINDOW_FRESH_NS;
}

static int fetch_window(struct cluster *c, struct member *m)
{
	uint64_t most = c->s->n_ranks <= SMALL_JOB ? RING : WINDOW_OPS;
	uint64_t n = m->op_index < most ? m->op_index : most;
	struct cw_op *ops;

	if (!m->ring || m->rank->is_blind || c->nodes[m->rank->node].state != CW_NODE_REPORTING)
		return 0;
	ops = calloc(n, sizeof(*ops));
	if (!ops)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		ops[i] = view_op(m, m->op_index - n + 1 + i);
		view_to_leader(c, m->rank, &ops[i]);
	}
	free(m->window);
	m->window = ops;
	m->n_window = (uint32_t)n;
	m->window_lost = m->op_index - n;
	m->window_ns = c->now_ns;
	m->has_marks = false;
	return 0;
}

static struct comm *find_comm(struct cluster *c, uint64_t id)
{
	for (uint32_t i = 0; i < c->n_comms; i++)
		if (c->comms[i].id == id)
			return &c->comms[i];
	return NULL;
}

int cluster_fetch_windows(struct cluster *c, const struct cw_snapshot *snap, const uint32_t *comms,
			  uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct comm *comm = find_comm(c, snap->comms[comms[i]].id);

		for (uint32_t m = 0; comm && m < comm->nranks; m++)
			if (fetch_window(c, &comm->members[m]) < 0)
				return -ENOMEM;
	}
	return 0;
}
