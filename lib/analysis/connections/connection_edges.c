/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/connections/connection_edges.h"

#include <errno.h>
#include <stdlib.h>

#include "model/facts.h"

/* One row, with the members at the ends of its edge. */
struct place {
	uint32_t sender, receiver;
	const struct cw_snap_connection *row;
};

static bool is_send(const struct cw_snap_connection *row)
{
	return row->flags & CW_CONNECTION_SEND;
}

static bool is_possible(const struct cw_snap_connection *row, uint32_t owner, uint32_t nranks)
{
	bool has_ready = !is_send(row) || row->flags & CW_CONNECTION_DETAILED;
	uint32_t ready = has_ready ? row->ready : row->handed;

	return row->peer < nranks && row->peer != owner && row->done <= row->handed &&
	       row->handed <= ready && ready <= row->posted && row->posted <= row->steps;
}

static int compare_edges(const struct place *x, const struct place *y)
{
	uint32_t p = x->row->flags & CW_CONNECTION_P2P, q = y->row->flags & CW_CONNECTION_P2P;

	if (x->sender != y->sender)
		return x->sender < y->sender ? -1 : 1;
	if (x->receiver != y->receiver)
		return x->receiver < y->receiver ? -1 : 1;
	if (x->row->channel != y->row->channel)
		return x->row->channel < y->row->channel ? -1 : 1;
	return p < q ? -1 : p > q;
}

/*
 * Orders by edge. Within an edge the sender's row comes before the receiver's, and an older op
 * before a newer one.
 */
static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int r = compare_edges(x, y);

	if (r != 0)
		return r;
	if (is_send(x->row) != is_send(y->row))
		return is_send(x->row) ? -1 : 1;
	return x->row->seq < y->row->seq ? -1 : x->row->seq > y->row->seq;
}

static struct connection_end end_of(const struct cw_snap_connection *row, bool sends)
{
	bool has_ready = !sends || row->flags & CW_CONNECTION_DETAILED;

	return (struct connection_end){ .row = row,
					.is_known = true,
					.posted = row->posted,
					.ready = has_ready ? row->ready : row->handed,
					.handed = row->handed,
					.done = row->done };
}

static struct connection_end finished_end(const struct cw_snap_connection *row, uint32_t steps)
{
	return (struct connection_end){ .row = row,
					.is_known = true,
					.posted = steps,
					.ready = steps,
					.handed = steps,
					.done = steps };
}

static bool has_completed(const struct cw_snap_member *m, uint64_t seq, bool is_p2p)
{
	return seq && !is_p2p && m->known & CW_KNOWN_COMPLETED && m->coll_completed >= seq;
}

/*
 * True if the member has finished its part of op `seq`: its device has completed the op, or all its
 * connections carry later ops.
 */
static bool has_finished(const struct cw_snap_member *m, uint64_t seq, bool is_p2p)
{
	bool has_rows = false;

	if (!seq || is_p2p)
		return false;
	if (has_completed(m, seq, is_p2p))
		return true;
	/* A call that has not returned may not have given all its parts to the proxy. */
	if (m->pending && !(m->pending->flags & CW_OPF_RETURNED) && m->pending->coll_seq <= seq)
		return false;
	for (uint32_t i = 0; i < m->n_connections; i++) {
		const struct cw_snap_connection *row = &m->connections[i];

		if (row->flags & CW_CONNECTION_P2P)
			continue;
		if (!row->seq || row->seq <= seq)
			return false;
		has_rows = true;
	}
	return has_rows;
}

/*
 * Fills the edge from the rows of its two ends. NULL = this end has no row. If the rows have
 * different ops, we fill the edge for the earlier op. The end with the later op has finished the
 * earlier one.
 */
static void join(const struct cw_snap_comm *c, const struct cw_snap_connection *out,
		 const struct cw_snap_connection *in, struct connection_edge *e)
{
	const struct cw_snap_connection *of = out ? out : in;
	int order = 0; /* < 0: the op of `out` is earlier; > 0: the op of `in` is */

	if (out && in && out->seq != in->seq)
		order = out->seq < in->seq ? -1 : 1;
	else if (out && in)
		order = out->replay < in->replay ? -1 : out->replay > in->replay;
	if (order > 0)
		of = in;
	e->seq = of->seq;
	e->steps = of->steps;
	if (out && order <= 0) {
		e->out = end_of(out, true);
		/* A GPU that has finished the op has filled all buffers. */
		if (!(out->flags & CW_CONNECTION_DETAILED) &&
		    has_completed(&c->members[e->sender], out->seq, e->is_p2p))
			e->out.ready = e->out.posted;
	} else if (out ? of->seq > 0 : has_finished(&c->members[e->sender], of->seq, e->is_p2p))
		e->out = finished_end(out, of->steps);
	if (in && order >= 0)
		e->in = end_of(in, false);
	else if (in ? of->seq > 0 : has_finished(&c->members[e->receiver], of->seq, e->is_p2p))
		e->in = finished_end(in, of->steps);
	/* Parts of different length belong to different ops. */
	if (out && in && order == 0 && out->steps != in->steps)
		e->in.is_known = false;
}

/* Finds the group of each member, and the groups at the ends of each edge. Returns 0 or -ENOMEM. */
static int find_groups(const struct cw_snapshot *snap, const struct cw_snap_comm *c,
		       struct cw_arena *arena, struct connection_edges *edges)
{
	uint32_t *first = cw_arena_new_array(arena, uint32_t, (size_t)snap->n_nodes + 1);
	bool is_apart = false;

	edges->group = cw_arena_new_array(arena, uint32_t, c->nranks);
	if (!first || !edges->group)
		return -ENOMEM;
	for (uint32_t i = 0; i < edges->n && !is_apart; i++) {
		uint32_t a = c->members[edges->v[i].sender].rank;
		uint32_t b = c->members[edges->v[i].receiver].rank;

		is_apart = a != CW_SNAP_NONE && b != CW_SNAP_NONE &&
			   snap->ranks[a].node == snap->ranks[b].node;
	}
	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t node = c->members[m].rank == CW_SNAP_NONE
					? CW_SNAP_NONE
					: snap->ranks[c->members[m].rank].node;

		edges->group[m] = m;
		if (is_apart || node >= snap->n_nodes)
			continue;
		if (!first[node])
			first[node] = m + 1;
		edges->group[m] = first[node] - 1;
	}
	for (uint32_t i = 0; i < edges->n; i++) {
		edges->v[i].from = edges->group[edges->v[i].sender];
		edges->v[i].to = edges->group[edges->v[i].receiver];
	}
	return 0;
}

int connection_edges_find(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *arena,
			  struct connection_edges *ret)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	struct place *places;
	uint32_t n = 0;

	*ret = (struct connection_edges){ 0 };
	for (uint32_t m = 0; m < c->nranks; m++)
		n += c->members[m].rank == CW_SNAP_NONE ? 0 : c->members[m].n_connections;
	if (!n)
		return 0;
	places = cw_arena_new_array(arena, struct place, n);
	ret->v = cw_arena_new_array(arena, struct connection_edge, n);
	if (!places || !ret->v)
		return -ENOMEM;
	n = 0;
	for (uint32_t m = 0; m < c->nranks; m++)
		for (uint32_t i = 0;
		     c->members[m].rank != CW_SNAP_NONE && i < c->members[m].n_connections; i++) {
			const struct cw_snap_connection *row = &c->members[m].connections[i];

			if (!is_possible(row, m, c->nranks))
				continue;
			places[n++] = (struct place){ .sender = is_send(row) ? m : row->peer,
						      .receiver = is_send(row) ? row->peer : m,
						      .row = row };
		}
	qsort(places, n, sizeof(*places), compare_places);
	for (uint32_t i = 0; i < n;) {
		const struct cw_snap_connection *out = NULL, *in = NULL;
		struct connection_edge *e = &ret->v[ret->n++];
		uint32_t first = i;

		for (; i < n && compare_edges(&places[first], &places[i]) == 0; i++) {
			/* A hostile record may have two rows for one end. We use the older op. */
			if (is_send(places[i].row) && !out)
				out = places[i].row;
			else if (!is_send(places[i].row) && !in)
				in = places[i].row;
		}
		e->sender = places[first].sender;
		e->receiver = places[first].receiver;
		e->channel = places[first].row->channel;
		e->is_p2p = places[first].row->flags & CW_CONNECTION_P2P;
		join(c, out, in, e);
	}
	return find_groups(snap, c, arena, ret);
}

enum connection_state connection_edge_state(const struct connection_edge *e)
{
	const struct connection_end *out = &e->out, *in = &e->in;
	bool holds_data = in->ready > in->done;

	if (!out->is_known || !in->is_known || in->ready > out->handed)
		return CONNECTION_UNKNOWN;
	if (out->done == e->steps && in->done == e->steps)
		return CONNECTION_FINISHED;
	if (out->handed > in->ready) {
		/*
		 * If the receiver's proxy has posted a buffer, the data are still in the network.
		 * Without a buffer, the receiver does not accept the data.
		 */
		if (in->posted > in->ready)
			return CONNECTION_AT_NETWORK;
		return holds_data ? CONNECTION_FOR_CONSUMER : CONNECTION_AT_RECEIVER;
	}
	/* The receiver has all data, but the confirmation has not reached the sender. */
	if (out->handed > out->done)
		return CONNECTION_AT_NETWORK;
	if (out->ready > out->handed) {
		if (in->posted > out->handed)
			return CONNECTION_AT_NETWORK;
		return holds_data ? CONNECTION_FOR_CONSUMER : CONNECTION_AT_RECEIVER;
	}
	if (holds_data)
		return CONNECTION_FOR_CONSUMER;
	if (out->posted > out->ready)
		return CONNECTION_FOR_PRODUCER;
	return out->posted < e->steps ? CONNECTION_AT_SENDER : CONNECTION_FINISHED;
}
