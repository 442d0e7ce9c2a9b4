/* SPDX-License-Identifier: Apache-2.0 */
/* Queries on an engine context that several parts of the engine need. */
#include "analysis/culprit/engine_context.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/align/messages.h"

/*
 * If a rank still waits this long after the last death, the job is not shutting down: the rank was
 * left behind. The grace period between a request to end and SIGKILL is 30 s with Slurm, Kubernetes
 * and torchrun.
 */
#define ENDING_LASTS_NS (INT64_C(120) * 1000000000)
/* If several ranks wait because of one rank, their waits begin within this time of each other. */
#define SAME_TIME_NS (INT64_C(1) * 1000000000)
/* The times of one event may differ by this much if they come from different nodes or sources. */
#define CLOCKS_APART_NS (INT64_C(250) * 1000000)

/* With fewer members, a linear search is as fast as the index. */
#define PLACES_MIN_MEMBERS 32

int engine_context_init_places(struct engine_context *s)
{
	s->places = cw_arena_new(&s->arena, struct engine_context_places);
	if (!s->places)
		return -ENOMEM;
	s->places->arena = &s->arena;
	s->places->of_comm = cw_arena_new_array(&s->arena, uint64_t *, s->snap->n_comms);
	return s->places->of_comm ? 0 : -ENOMEM;
}

static int compare_places(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the sorted index of the comm's ranks; NULL = out of memory. */
static const uint64_t *places_of(const struct engine_context *s, uint32_t comm)
{
	const struct cw_snap_comm *c = &s->snap->comms[comm];
	uint64_t *places = s->places->of_comm[comm];
	bool is_sorted = true;

	if (places)
		return places;
	places = cw_arena_array_raw(s->places->arena, c->nranks, sizeof(*places));
	if (!places)
		return NULL;
	for (uint32_t m = 0; m < c->nranks; m++) {
		places[m] = (uint64_t)c->members[m].rank << 32 | m;
		is_sorted = is_sorted && (!m || places[m - 1] < places[m]);
	}
	if (!is_sorted) /* mostly the ranks of a comm are in order */
		qsort(places, c->nranks, sizeof(*places), compare_places);
	s->places->of_comm[comm] = places;
	return places;
}

/* The engine may look up each of thousands of waiting ranks, so large comms have a sorted index. */
uint32_t engine_context_comm_rank(const struct engine_context *s, uint32_t comm, uint32_t rank)
{
	const struct cw_snap_comm *c = &s->snap->comms[comm];
	const uint64_t *places = c->nranks < PLACES_MIN_MEMBERS ? NULL : places_of(s, comm);
	uint32_t low = 0, high = c->nranks;

	for (uint32_t m = 0; !places && m < c->nranks; m++)
		if (c->members[m].rank == rank)
			return m;
	while (places && low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (places[middle] < (uint64_t)rank << 32)
			low = middle + 1;
		else
			high = middle;
	}
	return places && low < c->nranks && places[low] >> 32 == rank ? (uint32_t)places[low]
								      : CW_SNAP_NONE;
}

bool engine_context_failed_call(const struct engine_context *s, uint32_t gate, uint32_t rank,
				struct failed_call *ret)
{
	const struct gate *g = gate < s->g.n_gates ? &s->g.gates[gate] : NULL;
	uint32_t m = g ? engine_context_comm_rank(s, g->comm, rank) : CW_SNAP_NONE;

	return m != CW_SNAP_NONE && failed_call_at(s->snap, g, m, ret);
}

uint32_t engine_context_n_completed(const struct engine_context *s, const struct gate *gate)
{
	const struct cw_snap_comm *c = &s->snap->comms[gate->comm];
	uint32_t n = 0;

	if ((gate->kind != GATE_COLLECTIVE && gate->kind != GATE_ROOT) || !gate->seq)
		return 0;
	for (uint32_t m = 0; m < c->nranks; m++)
		n += c->members[m].rank != CW_SNAP_NONE &&
		     (c->members[m].known & CW_KNOWN_COMPLETED) &&
		     c->members[m].coll_completed >= gate->seq;
	return n;
}

const struct alignment *engine_context_sides(const struct engine_context *s,
					     const struct finding *f)
{
	return f->setup ? f->setup : &s->alignments[f->comm];
}

bool engine_context_may_be_ending(const struct engine_context *s)
{
	return s->snap->now_ns - s->last_end_ns < ENDING_LASTS_NS;
}

bool engine_context_is_ending(const struct engine_context *s)
{
	return !s->has_one_ended && s->n_ended >= s->snap->n_ranks - s->n_ended &&
	       engine_context_may_be_ending(s);
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

bool engine_context_gate_before(const struct engine_context *s, const struct gate *a,
				const struct gate *b)
{
	const struct cw_snap_comm *ca = &s->snap->comms[a->comm], *cb = &s->snap->comms[b->comm];
	int order = compare(ca->id, cb->id);

	if (!order)
		order = compare(ca->instance, cb->instance);
	return order ? order < 0 : a->seq < b->seq;
}

/*
 * Orders two gates by how clearly they show the call that a missing rank has not made. The gate
 * with fewer missing ranks comes first. With equal numbers a collective is clearer than a message,
 * because a program may send long before it receives.
 */
static int compare_clearness(const struct gate *a, const struct gate *b)
{
	if (a->n_missing_all != b->n_missing_all)
		return a->n_missing_all < b->n_missing_all ? -1 : 1;
	return (a->kind == GATE_P2P) - (b->kind == GATE_P2P);
}

/* True if a rank has waited at the gate since since_ns, or for at most slack_ns less. */
static bool began_by(const struct gate *gate, int64_t since_ns, int64_t slack_ns)
{
	return !since_ns || (gate->since_ns && gate->since_ns <= since_ns + slack_ns);
}

/*
 * Returns the gate that shows best which call the rank has not made. We compare the gates whose
 * waits began at about the time of the oldest wait. We choose the gate where the fewest ranks are
 * missing. A much younger gate does not count, however clear it is: the subject of a verdict must
 * not change while the hang lasts.
 *
 * If gates are equally clear, and the difference of their times may come from the nodes' clocks, we
 * choose by the gate's name. Another leader may get the same digests at other times, and must find
 * the same subject.
 */
uint32_t engine_context_gate_of(const struct engine_context *s, uint32_t rank)
{
	const struct waitgraph *g = &s->g;
	uint32_t clearest = CW_SNAP_NONE, best = CW_SNAP_NONE;
	/* The oldest wait at any gate, and the oldest at the clearest gate. */
	int64_t oldest_ns = 0, clearest_ns = 0;

	for (uint32_t i = g->miss_start[rank]; i < g->miss_start[rank + 1]; i++) {
		int64_t since = g->gates[g->misses[i]].since_ns;

		if (since && (!oldest_ns || since < oldest_ns))
			oldest_ns = since;
	}
	for (uint32_t i = g->miss_start[rank]; i < g->miss_start[rank + 1]; i++) {
		const struct gate *gate = &g->gates[g->misses[i]];
		int order = clearest == CW_SNAP_NONE ? -1
						     : compare_clearness(gate, &g->gates[clearest]);

		if (!began_by(gate, oldest_ns, SAME_TIME_NS) || order > 0)
			continue;
		if (order < 0) {
			clearest = g->misses[i];
			clearest_ns = 0;
		}
		if (gate->since_ns && (!clearest_ns || gate->since_ns < clearest_ns))
			clearest_ns = gate->since_ns;
	}
	for (uint32_t i = g->miss_start[rank]; i < g->miss_start[rank + 1]; i++) {
		const struct gate *gate = &g->gates[g->misses[i]];

		if (!began_by(gate, clearest_ns, CLOCKS_APART_NS) ||
		    compare_clearness(gate, &g->gates[clearest]) != 0)
			continue;
		if (best == CW_SNAP_NONE || engine_context_gate_before(s, gate, &g->gates[best]))
			best = g->misses[i];
	}
	return best;
}

static bool is_unfinished_with(const struct cw_op *op, const struct cw_op *pending, uint32_t peer)
{
	return op && cw_op_is_p2p(op->kind) && op->peer == (int32_t)peer &&
	       op->progress != CW_PROGRESS_COMPLETED && waitgraph_same_launch(op, pending);
}

/* True if the peer has posted the counterpart of member `me`'s op. */
static bool is_met(const struct cw_snap_comm *c, uint32_t me, const struct cw_op *op)
{
	const struct cw_snap_member *m = &c->members[op->peer];
	const struct cw_p2p_peer *e;

	if (!(m->known & CW_KNOWN_P2P))
		return waitgraph_counterpart(c, me, op, &(uint32_t){ 0 }) != NULL;
	e = messages_with(m, me);
	return e && (op->kind == CW_OP_SEND ? e->recvs : e->sends) >= op->p2p_seq;
}

/*
 * One launch may hold a send to the peer and a receive from it, and the peer may have posted the
 * counterpart of either. So the first op without a counterpart comes before the first op at all.
 */
const struct cw_op *engine_context_call_with(const struct engine_context *s, uint32_t comm,
					     const struct cw_op *pending, uint32_t waiter,
					     uint32_t rank)
{
	const struct cw_snap_comm *c = &s->snap->comms[comm];
	uint32_t me = engine_context_comm_rank(s, comm, waiter);
	uint32_t peer = engine_context_comm_rank(s, comm, rank);
	const struct cw_op *first = NULL;
	const struct cw_snap_member *m;

	if (me == CW_SNAP_NONE || peer == CW_SNAP_NONE)
		return pending;
	m = &c->members[me];
	for (uint32_t i = 0; i < m->n_window + 2; i++) {
		const struct cw_op *op = i == 0             ? pending
					 : i <= m->n_window ? &m->window[i - 1]
							    : m->last;

		if (!is_unfinished_with(op, pending, peer))
			continue;
		if (!is_met(c, me, op))
			return op;
		first = first ? first : op;
	}
	return first;
}
