/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a hang almost all connections wait for other ranks, and only one place is at fault. We search
 * for the place in this order:
 *
 * 1. An edge whose data, credit or confirmation is in the network (connection_edge_state()). Both
 *    proxies have done their part, so no GPU can explain the wait.
 * 2. A GPU that has its inputs and room for its outputs, but does nothing. The path of the data
 *    through the channel shows the inputs and outputs of a GPU (connection_tree.h).
 * 3. A rank that is still inside the call and has no part in its proxy, although its neighbours
 *    have theirs.
 *
 * All other ranks are downstream of this place and innocent. If a member is stopped or gone, we
 * judge nothing. Such a member explains the hang, and its connections look like broken ones.
 *
 * A GPU works on one op at a time, so we judge GPUs only in the op that hangs. Older work on
 * another communicator may hold up a GPU, too. That communicator gets a judgement of its own.
 */
#include "analysis/connections/connection_judge.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/connections/connection_edges.h"
#include "analysis/connections/connection_tree.h"
#include "model/facts.h"
#include "record/record_layout.h"

/*
 * The times of two nodes may differ by this much, because digests travel for different times.
 * Between closer times the order of the edges decides, so that successive verdicts name the same
 * edge.
 */
#define SAME_TIME_NS (INT64_C(1) * 1000000000)
/*
 * A step on a slow connection takes at least SLOW_FACTOR times as long as on the second slowest
 * connection.
 */
#define SLOW_FACTOR 10
/* The factor if we know only one step of one other connection, which may be quick by chance. */
#define SLOW_FACTOR_OF_ONE 25
/* We compare only connections that have confirmed at least this many steps. */
#define SLOW_MIN_STEPS 2u
/*
 * If no other connection can be compared, a step of a slow connection takes at least this long, and
 * at least this many others show that the connection holds them up (count_held_up()).
 */
#define SLOW_ALONE_NS (INT64_C(100) * 1000000)
#define SLOW_ALONE_HELD_UP 2u

struct judge {
	const struct cw_snapshot *snap;
	const struct cw_snap_comm *comm;
	uint32_t comm_index, op_kind;
	uint64_t seq;
	struct cw_arena *arena;
	struct connection_edges edges;
	bool all_stand;   /* no connection of the comm has moved between two readings */
	bool *is_busy;    /* per group: its GPUs may be busy with another communicator */
	bool *is_inside;  /* per group: some of its GPUs may still be inside the op */
	bool is_complete; /* we see all members, and no connection is lost */
	struct connection_judgement found;
};

/* ---- readings ---- */

static const struct cw_snap_rank *rank_of(const struct judge *j, uint32_t member)
{
	return &j->snap->ranks[j->comm->members[member].rank];
}

/* Returns the time between the first and the last reading with the same counts. */
static int64_t stood_ns(const struct judge *j, uint32_t member,
			const struct cw_snap_connection *row)
{
	return row->same_since_ns ? rank_of(j, member)->sampled_ns - row->same_since_ns : 0;
}

/*
 * True if both ends of the edge stand (CONNECTION_STANDS_NS). An end without a row has finished and
 * moves no more. While other connections move, the edge may only be slow. Then we require a longer
 * time.
 */
static bool edge_stands(const struct judge *j, const struct connection_edge *e)
{
	int64_t least_ns = j->all_stand ? CONNECTION_STANDS_NS : CONNECTION_STANDS_LONG_NS;

	return (!e->out.row || stood_ns(j, e->sender, e->out.row) >= least_ns) &&
	       (!e->in.row || stood_ns(j, e->receiver, e->in.row) >= least_ns);
}

/*
 * Sets is_complete and all_stand from all members. Returns false if a member is stopped or gone,
 * because such a member explains the hang.
 */
static bool look_at_members(struct judge *j)
{
	j->is_complete = true;
	j->all_stand = true;
	for (uint32_t m = 0; m < j->comm->nranks; m++) {
		const struct cw_snap_member *member = &j->comm->members[m];
		const struct cw_snap_rank *r;

		if (member->rank == CW_SNAP_NONE) {
			j->is_complete = false;
			continue;
		}
		r = rank_of(j, m);
		if (cw_liveness_is_dead(r->liveness) || cw_rank_held_by(r) ||
		    member->state != CW_COMM_READY)
			return false;
		if (r->connections_lost || r->liveness == CW_LIVE_UNKNOWN)
			j->is_complete = false;
		for (uint32_t i = 0; i < member->n_connections; i++)
			j->all_stand = j->all_stand && stood_ns(j, m, &member->connections[i]) >=
							       CONNECTION_STANDS_NS;
	}
	return true;
}

static enum cw_confidence proven(const struct judge *j)
{
	return j->all_stand && j->is_complete ? CW_CONFIDENCE_CERTAIN : CW_CONFIDENCE_LIKELY;
}

/* ---- edges ---- */

static struct cw_link link_of(const struct judge *j, const struct connection_edge *e)
{
	return (struct cw_link){ .is_set = true,
				 .sender = j->comm->members[e->sender].rank,
				 .receiver = j->comm->members[e->receiver].rank,
				 .channel = e->channel,
				 .steps = e->steps,
				 .handed = e->out.handed,
				 .confirmed = e->out.done,
				 .received = e->in.ready };
}

/* Returns the time of the last step at either end; 0 = unknown. */
static int64_t moved_ns(const struct connection_edge *e)
{
	int64_t a = e->out.row ? e->out.row->moved_ns : 0, b = e->in.row ? e->in.row->moved_ns : 0;

	return a > b ? a : b;
}

/*
 * True if the edge carries ops like the judged one. Sends and receives use connections of their
 * own, which hang independently of collectives.
 */
static bool is_of_op(const struct judge *j, const struct connection_edge *e)
{
	return e->is_p2p == !j->seq;
}

/*
 * Finds the edge at fault. An edge that waits in the network comes before an edge that waits for a
 * proxy. Among equal edges we choose the one that stopped first, because the others may have
 * stopped because of it.
 */
static bool find_edge(struct judge *j)
{
	const struct connection_edge *best = NULL;
	enum connection_state best_state = CONNECTION_UNKNOWN;

	for (uint32_t i = 0; i < j->edges.n; i++) {
		const struct connection_edge *e = &j->edges.v[i];
		enum connection_state state = connection_edge_state(e);
		bool is_at_fault = state == CONNECTION_AT_NETWORK ||
				   state == CONNECTION_AT_SENDER || state == CONNECTION_AT_RECEIVER;

		if (!is_of_op(j, e) || !is_at_fault || !edge_stands(j, e))
			continue;
		if (best &&
		    (best_state == CONNECTION_AT_NETWORK) != (state == CONNECTION_AT_NETWORK)) {
			if (best_state == CONNECTION_AT_NETWORK)
				continue;
		} else if (best && moved_ns(e) > moved_ns(best) - SAME_TIME_NS) {
			continue;
		}
		best = e;
		best_state = state;
	}
	if (!best)
		return false;
	j->found.detail = CW_DETAIL_CONNECTION;
	j->found.link = link_of(j, best);
	/*
	 * If the network has confirmed more steps than the receiver has got, the data have left the
	 * sender's proxy: sockets confirm a step once the sender's kernel has it.
	 */
	j->found.link.side =
		best_state == CONNECTION_AT_RECEIVER || (best_state == CONNECTION_AT_NETWORK &&
							 best->out.done > best->in.ready)
			? CW_LINK_SIDE_RECEIVER
			: CW_LINK_SIDE_SENDER;
	j->found.allows =
		best_state == CONNECTION_AT_NETWORK && best->seq ? proven(j) : CW_CONFIDENCE_LIKELY;
	return true;
}

/*
 * Returns how long the network takes for one step of a busy edge. The wait of the step in the queue
 * does not count.
 */
static int64_t busy_step_ns(const struct connection_edge *e)
{
	uint32_t n = e->out.ready - e->out.done;

	return e->out.row->held_ns / (n ? n : 1);
}

/*
 * True if the receiver has a free buffer. Without a free buffer, the edge shows nothing about the
 * network.
 */
static bool has_room(const struct connection_edge *e)
{
	return e->out.row && e->in.row && e->out.is_known && e->in.is_known &&
	       e->out.row->seq == e->in.row->seq &&
	       (e->in.posted > e->in.ready || e->in.ready == e->steps);
}

/*
 * Returns how long the network takes for one step of an edge; -1 = unknown. With confirms_arrival,
 * a confirmed step has arrived, and we take the mean time until the confirmation. Sockets confirm a
 * step before it arrives. For them we take the time between the last steps at both ends, if the
 * ends have the same number of steps.
 */
static int64_t step_ns(const struct connection_edge *e, bool confirms_arrival)
{
	int64_t ns;

	if (!has_room(e) || e->out.done < SLOW_MIN_STEPS ||
	    (!confirms_arrival && e->out.ready != e->in.ready))
		return -1;
	ns = confirms_arrival ? 0 : e->in.row->moved_ns - e->out.row->moved_ns;
	return ns > busy_step_ns(e) ? ns : busy_step_ns(e);
}

/*
 * True if the time of edge b says something about edge a. Edges between the same two nodes, in the
 * same direction, are slow alike.
 */
static bool is_comparable(const struct judge *j, const struct connection_edge *a,
			  const struct connection_edge *b)
{
	return is_of_op(j, b) && (rank_of(j, a->sender)->node != rank_of(j, b->sender)->node ||
				  rank_of(j, a->receiver)->node != rank_of(j, b->receiver)->node);
}

/* True if the network has data of the edge, and the receiver has a buffer for them. */
static bool has_data_in_network(const struct connection_edge *e)
{
	return has_room(e) && e->out.ready > e->in.ready;
}

/*
 * True if the network has data of another edge for a comparable time. All connections may be slow
 * then.
 */
static bool is_matched(const struct judge *j, const struct connection_edge *slow)
{
	for (uint32_t i = 0; i < j->edges.n; i++) {
		const struct connection_edge *e = &j->edges.v[i];

		if (is_comparable(j, slow, e) && has_data_in_network(e) &&
		    busy_step_ns(e) > busy_step_ns(slow) / SLOW_FACTOR)
			return true;
	}
	return false;
}

/*
 * Counts the edges that wait for a slow one. Either they have data that the receiver's GPU does not
 * take, or the network has transferred all their data far more quickly.
 */
static unsigned count_held_up(const struct judge *j, const struct connection_edge *slow)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < j->edges.n; i++) {
		const struct connection_edge *e = &j->edges.v[i];

		if (!is_comparable(j, slow, e) || !e->out.is_known || !e->in.is_known)
			continue;
		/* The readings of both ends differ in time, so the receiver may have more. */
		if (!has_room(e))
			n += e->out.ready > e->in.done;
		else
			n += e->out.done && e->in.ready >= e->out.ready &&
			     (busy_step_ns(e) || e->out.row->bytes_per_s) &&
			     busy_step_ns(e) <= busy_step_ns(slow) / SLOW_FACTOR_OF_ONE;
	}
	return n;
}

/*
 * Finds a connection that moves, but whose steps take far longer than those of the others. The slow
 * connection is always busy, and the others are idle most of the time.
 */
static void find_slow(struct judge *j)
{
	const struct connection_edge *best = NULL;
	int64_t slowest_ns = 0;
	unsigned n_others = 0, factor = SLOW_FACTOR;
	bool confirms_arrival;

	for (uint32_t i = 0; i < j->edges.n; i++) {
		const struct connection_edge *e = &j->edges.v[i];

		/* The receiver's GPU may be about to take the newest step. */
		if (is_of_op(j, e) && has_data_in_network(e) && e->in.ready <= e->in.done + 1 &&
		    (!best || busy_step_ns(e) > busy_step_ns(best)))
			best = e;
	}
	if (!best || edge_stands(j, best) || !busy_step_ns(best) || is_matched(j, best))
		return;
	confirms_arrival = best->out.done <= best->in.ready;
	for (uint32_t i = 0; i < j->edges.n; i++) {
		const struct connection_edge *e = &j->edges.v[i];
		int64_t ns = is_comparable(j, best, e) ? step_ns(e, confirms_arrival) : -1;

		n_others += ns >= 0;
		if (ns > slowest_ns)
			slowest_ns = ns;
	}
	if (n_others == 1 && !confirms_arrival)
		factor = SLOW_FACTOR_OF_ONE;
	if (!n_others &&
	    (busy_step_ns(best) < SLOW_ALONE_NS || count_held_up(j, best) < SLOW_ALONE_HELD_UP))
		return;
	if (slowest_ns > busy_step_ns(best) / factor)
		return;
	j->found.detail = CW_DETAIL_SLOW_CONNECTION;
	j->found.link = link_of(j, best);
	j->found.link.held_ns = busy_step_ns(best);
	j->found.link.bytes_per_s = best->out.row->bytes_per_s;
	j->found.allows = CW_CONFIDENCE_LIKELY;
}

/* ---- GPUs ---- */

/* The connections of one rank in one channel, as its GPU sees them. */
struct gpu {
	uint32_t n_in, n_out;
	uint32_t n_data;     /* inputs with data in the buffer */
	uint32_t n_ended;    /* inputs of which the GPU has all data */
	uint32_t n_room;     /* outputs with room in the buffer */
	uint32_t n_finished; /* outputs that the GPU has finished */
	uint32_t consumed, produced;
	bool is_known;
	/* NCCL does not show whether an output waits for this GPU or for the receiver's credit. */
	bool is_coarse;
};

static void add_edge(const struct connection_edge *e, bool sends, struct gpu *g)
{
	const struct connection_end *end = sends ? &e->out : &e->in;

	if (!end->is_known) {
		g->is_known = false;
		return;
	}
	if (sends) {
		g->n_out++;
		g->n_finished += end->ready == e->steps;
		/*
		 * An old NCCL does not report `ready`. Then the output has room only if the
		 * receiver has posted a buffer.
		 */
		g->n_room += end->posted > end->ready && end->row &&
			     (end->row->flags & CW_CONNECTION_DETAILED ||
			      (e->in.is_known && e->in.posted > end->handed));
		g->is_coarse = g->is_coarse || (end->row && end->ready < e->steps &&
						!(end->row->flags & CW_CONNECTION_DETAILED));
		g->produced = end->ready;
	} else {
		g->n_in++;
		g->n_data += end->ready > end->done;
		g->n_ended += end->done == e->steps;
		g->consumed = end->done;
	}
}

static struct gpu gpu_of(const struct connection_channel *ch, uint32_t node, bool is_up)
{
	const struct connection_node *n = &ch->nodes[node];
	bool is_tree = ch->way == CONNECTION_WAY_TREE, is_root = n->parent == CW_SNAP_NONE;
	struct gpu g = { .is_known = true };

	for (uint32_t i = 0; i < n->n_edges; i++) {
		const struct connection_edge *e = n->edges[i];
		bool with_parent =
			is_tree && !is_root && connection_channel_peer(ch, node, e) == n->parent;
		bool sends = e->from == n->group;

		/* On the way up a rank receives from its children and sends to its parent. */
		if (is_tree && !is_root && (sends == with_parent) != is_up)
			continue;
		add_edge(e, sends, &g);
	}
	return g;
}

static bool could_go_on(const struct gpu *g)
{
	return g->is_known && g->n_data + g->n_ended == g->n_in &&
	       g->n_room + g->n_finished == g->n_out && (g->n_data || g->n_room);
}

/*
 * Returns the fault of the GPU, from its connections in one channel. CW_DETAIL_NONE = the GPU waits
 * for another rank, or we cannot tell.
 */
static enum cw_detail fault_of(const struct judge *j, const struct connection_channel *ch,
			       uint32_t node, bool *ret_is_coarse)
{
	/* True if each GPU begins the op with data of its own, and so sends before it receives. */
	bool begins_everywhere = j->op_kind == CW_OP_ALL_REDUCE || j->op_kind == CW_OP_ALL_GATHER ||
				 j->op_kind == CW_OP_REDUCE_SCATTER;
	struct gpu g = gpu_of(ch, node, true);

	if (ch->way == CONNECTION_WAY_UNKNOWN)
		return CW_DETAIL_NONE;
	if (ch->way == CONNECTION_WAY_TREE) {
		/* A rank sends its data up before it takes the data that come down. */
		if (ch->nodes[node].parent != CW_SNAP_NONE && g.is_known && g.n_finished == g.n_out)
			g = gpu_of(ch, node, false);
		*ret_is_coarse |= g.is_coarse;
		if (!could_go_on(&g))
			return CW_DETAIL_NONE;
		return g.n_data ? CW_DETAIL_GPU_NOT_CONSUMING : CW_DETAIL_GPU_NOT_PRODUCING;
	}
	*ret_is_coarse |= g.is_coarse;
	if (g.n_data && could_go_on(&g))
		return CW_DETAIL_GPU_NOT_CONSUMING;
	if (!g.is_known || !g.n_room || g.n_data)
		return CW_DETAIL_NONE;
	/*
	 * In a ring each GPU sends one step without input in each round. Until then, it has sent at
	 * most as many steps as it has received. The first rank of a chain receives nothing.
	 */
	if (g.n_ended == g.n_in || (begins_everywhere && g.produced <= g.consumed))
		return CW_DETAIL_GPU_NOT_PRODUCING;
	return CW_DETAIL_NONE;
}

/*
 * Returns the time at which the member entered its oldest open op. Without progress words we only
 * know its newest op. INT64_MAX = unknown.
 */
static int64_t entered_ns(const struct cw_snap_member *m)
{
	const struct cw_op *op = m->pending ? m->pending : m->last;

	return op && op->enter_ns ? op->enter_ns : INT64_MAX;
}

/*
 * Sets is_inside for the groups in which a GPU may be inside the op. Sets is_busy for the groups in
 * which a GPU may be busy with an older op of another communicator. Returns 0 or -ENOMEM.
 */
static int find_busy_groups(struct judge *j)
{
	int64_t *oldest_ns = cw_arena_new_array(j->arena, int64_t, j->snap->n_ranks);

	j->is_busy = cw_arena_new_array(j->arena, bool, j->comm->nranks);
	j->is_inside = cw_arena_new_array(j->arena, bool, j->comm->nranks);
	if (!oldest_ns || !j->is_busy || !j->is_inside)
		return -ENOMEM;
	for (uint32_t r = 0; r < j->snap->n_ranks; r++)
		oldest_ns[r] = INT64_MAX;
	for (uint32_t c = 0; c < j->snap->n_comms; c++)
		for (uint32_t m = 0; c != j->comm_index && m < j->snap->comms[c].nranks; m++) {
			const struct cw_snap_member *o = &j->snap->comms[c].members[m];

			if (o->rank != CW_SNAP_NONE && o->n_connections &&
			    entered_ns(o) < oldest_ns[o->rank])
				oldest_ns[o->rank] = entered_ns(o);
		}
	for (uint32_t m = 0; m < j->comm->nranks; m++) {
		const struct cw_snap_member *own = &j->comm->members[m];

		if (own->rank != CW_SNAP_NONE && oldest_ns[own->rank] < entered_ns(own))
			j->is_busy[j->edges.group[m]] = true;
		if (!(own->known & CW_KNOWN_COMPLETED) || own->coll_completed < j->seq)
			j->is_inside[j->edges.group[m]] = true;
	}
	return 0;
}

struct accused {
	uint32_t group;
	bool has_others; /* another group has an equally good accusation */
	enum cw_detail detail;
	bool is_guess, is_coarse;
	int64_t moved_ns;
};

/*
 * Keeps the better accusation. With a known root an accusation is better than with a guessed root.
 * Data that a GPU does not take are better evidence than data that it does not send. Of equal
 * accusations we keep the GPU that stopped first.
 */
static void accuse(const struct judge *j, const struct connection_channel *ch, uint32_t node,
		   enum cw_detail detail, bool is_coarse, struct accused *best)
{
	const struct connection_node *n = &ch->nodes[node];
	struct accused a = { .group = n->group,
			     .detail = detail,
			     .is_coarse = is_coarse,
			     .is_guess = (ch->way == CONNECTION_WAY_TREE && !ch->is_root_known) ||
					 (ch->way == CONNECTION_WAY_PAIR &&
					  detail == CW_DETAIL_GPU_NOT_PRODUCING) };
	int order;

	if (j->is_busy[n->group] || !j->is_inside[n->group])
		return;
	for (uint32_t i = 0; i < n->n_edges; i++)
		if (moved_ns(n->edges[i]) > a.moved_ns)
			a.moved_ns = moved_ns(n->edges[i]);
	if (best->group == CW_SNAP_NONE) {
		order = 1;
	} else if (a.is_guess != best->is_guess) {
		order = a.is_guess ? -1 : 1;
	} else if (a.detail != best->detail) {
		order = a.detail == CW_DETAIL_GPU_NOT_CONSUMING ? 1 : -1;
	} else {
		a.has_others = best->has_others || a.group != best->group;
		best->has_others = a.has_others;
		order = a.moved_ns <= best->moved_ns - SAME_TIME_NS ? 1 : -1;
	}
	if (order > 0)
		*best = a;
}

/*
 * Accuses all ranks of the group, or only the member `only` unless it is CW_SNAP_NONE. Returns 0 or
 * -ENOMEM.
 */
static int blame(struct judge *j, uint32_t group, uint32_t only)
{
	uint32_t n = 0;

	j->found.ranks = cw_arena_new_array(j->arena, uint32_t, j->comm->nranks);
	if (!j->found.ranks)
		return -ENOMEM;
	for (uint32_t m = 0; m < j->comm->nranks; m++)
		if (j->edges.group[m] == group && (only == CW_SNAP_NONE || m == only) &&
		    j->comm->members[m].rank != CW_SNAP_NONE)
			j->found.ranks[n++] = j->comm->members[m].rank;
	j->found.n_ranks = n;
	return 0;
}

static int judge_channel(const struct judge *j, const struct connection_edge **edges, uint32_t n,
			 struct accused *a)
{
	struct connection_channel ch;
	bool is_whole = true;
	int r = connection_channel_find(edges, n, j->arena, &ch);

	/*
	 * If we do not know an end, the data may take another path through the channel than it
	 * seems.
	 */
	for (uint32_t i = 0; i < n; i++)
		is_whole = is_whole && edges[i]->out.is_known && edges[i]->in.is_known;

	for (uint32_t i = 0; r == 0 && i < ch.n_nodes; i++) {
		bool is_coarse = !is_whole;
		enum cw_detail detail = fault_of(j, &ch, i, &is_coarse);

		if (detail != CW_DETAIL_NONE)
			accuse(j, &ch, i, detail, is_coarse, a);
	}
	return r;
}

static int compare_channels(const void *a, const void *b)
{
	const struct connection_edge *x = *(const struct connection_edge *const *)a;
	const struct connection_edge *y = *(const struct connection_edge *const *)b;

	if (x->channel != y->channel)
		return x->channel < y->channel ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Finds the GPU that does not go on in the op that hangs. Returns 0 or -ENOMEM. */
static int find_gpu(struct judge *j, bool *ret_found)
{
	const struct connection_edge **of =
		cw_arena_new_array(j->arena, const struct connection_edge *, j->edges.n);
	struct accused a = { .group = CW_SNAP_NONE };
	uint32_t n = 0;
	int r = 0;

	if (!of)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->edges.n; i++)
		if (j->seq && !j->edges.v[i].is_p2p && j->edges.v[i].seq == j->seq)
			of[n++] = &j->edges.v[i];
	qsort(of, n, sizeof(const struct connection_edge *), compare_channels);
	for (uint32_t i = 0, next; i < n && r == 0; i = next) {
		for (next = i; next < n && of[next]->channel == of[i]->channel;)
			next++;
		r = judge_channel(j, &of[i], next - i, &a);
	}
	*ret_found = r == 0 && a.group != CW_SNAP_NONE;
	if (!*ret_found)
		return r;
	j->found.detail = a.detail;
	r = blame(j, a.group, CW_SNAP_NONE);
	j->found.allows = j->found.n_ranks > 1 || a.is_coarse ? CW_CONFIDENCE_LIKELY : proven(j);
	if (a.has_others || a.is_guess)
		j->found.allows = CW_CONFIDENCE_POSSIBLE;
	return r;
}

/* ---- proxies ---- */

/*
 * True if the member is inside its call of the op, but has no part for the edge, and the other end
 * stands in the op. A sender finishes its part before the receiver does. So a sender lacks its part
 * only if the receiver has got nothing.
 */
static bool lacks_part(const struct judge *j, const struct connection_edge *e, uint32_t member)
{
	const struct cw_snap_member *m = &j->comm->members[member];
	bool is_sender = member == e->sender;

	return !(is_sender ? e->out.row : e->in.row) && !e->is_p2p && e->seq == j->seq &&
	       m->rank != CW_SNAP_NONE && m->pending && m->pending->coll_seq >= j->seq &&
	       !(m->pending->flags & CW_OPF_RETURNED) &&
	       (is_sender ? !e->in.ready : e->out.done < e->steps) && edge_stands(j, e) &&
	       !rank_of(j, member)->connections_lost && !j->is_busy[j->edges.group[member]];
}

/*
 * Finds the rank that is inside its call and has no parts in its proxy. In NVIDIA/nccl#2353 the
 * pool of proxy operations is exhausted, and the call waits for a free one inside
 * ncclLocalOpAppend(). If there are several such ranks, we take the rank that lacks the most parts.
 * Returns 0 or -ENOMEM.
 */
static int find_missing_part(struct judge *j, bool *ret_found)
{
	uint32_t *n_lacks = cw_arena_new_array(j->arena, uint32_t, j->comm->nranks);
	uint32_t best = CW_SNAP_NONE;
	int r;

	if (!n_lacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->edges.n && j->seq; i++) {
		const struct connection_edge *e = &j->edges.v[i];

		/* A missing receiver is better evidence than a missing sender. */
		n_lacks[e->receiver] += 2u * lacks_part(j, e, e->receiver);
		n_lacks[e->sender] += lacks_part(j, e, e->sender);
	}
	for (uint32_t m = 0; m < j->comm->nranks; m++)
		if (n_lacks[m] && (best == CW_SNAP_NONE || n_lacks[m] > n_lacks[best]))
			best = m;
	*ret_found = best != CW_SNAP_NONE;
	if (!*ret_found)
		return 0;
	r = blame(j, j->edges.group[best], best);
	j->found.detail = CW_DETAIL_NOT_IN_PROXY;
	j->found.allows = CW_CONFIDENCE_LIKELY;
	return r;
}

/* Returns the number of members whose call of the op, or of a later one, has not returned. */
static uint32_t count_inside_call(const struct judge *j)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < j->comm->nranks; m++) {
		const struct cw_op *op = j->comm->members[m].pending;

		n += op && op->coll_seq >= j->seq && !(op->flags & CW_OPF_RETURNED);
	}
	return n;
}

/*
 * Returns the op to judge: the oldest open op, or `seq` if none is known. Without progress words
 * `seq` is the newest call of the ranks, and an older one may hang.
 */
static uint64_t find_seq(const struct judge *j, uint64_t seq)
{
	uint64_t oldest = 0;

	for (uint32_t i = 0; i < j->edges.n; i++) {
		const struct connection_edge *e = &j->edges.v[i];

		if (e->is_p2p || !e->seq || !seq)
			continue;
		if (!oldest || e->seq < oldest)
			oldest = e->seq;
	}
	return oldest ? oldest : seq;
}

int connection_judge(const struct cw_snapshot *snap, uint32_t comm, uint64_t seq, uint32_t op_kind,
		     struct cw_arena *arena, struct connection_judgement *ret)
{
	struct judge j = { .snap = snap,
			   .comm = &snap->comms[comm],
			   .comm_index = comm,
			   .op_kind = op_kind,
			   .arena = arena };
	bool found = false;
	int r = 0;

	if (look_at_members(&j))
		r = connection_edges_find(snap, comm, arena, &j.edges);
	if (r == 0 && j.edges.n) {
		j.seq = find_seq(&j, seq);
		found = find_edge(&j);
	}
	if (r == 0 && j.edges.n && !found)
		r = find_busy_groups(&j);
	/* If only one call has not returned, its missing parts explain the wait of all GPUs. */
	if (r == 0 && j.edges.n && !found && count_inside_call(&j) == 1)
		r = find_missing_part(&j, &found);
	/* A GPU at fault holds up all others. */
	if (r == 0 && j.edges.n && !found && j.all_stand)
		r = find_gpu(&j, &found);
	if (r == 0 && j.edges.n && !found)
		r = find_missing_part(&j, &found);
	if (r == 0 && j.edges.n && !found)
		find_slow(&j);
	if (r == 0)
		*ret = j.found;
	return r;
}
