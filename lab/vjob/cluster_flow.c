/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines when a member's part of a collective ends, after NCCL's device code (2.29.7, the
 * source package nvidia-nccl of Debian, which contains the files below).
 *
 * A member's part ends when its own kernel ends, and no member notifies the others. The kernel
 * moves slices between its neighbours' buffers. It receives a slice when its predecessor has sent
 * it. It sends a slice when a slot of its successor is free: NCCL_STEPS slots per connection
 * (src/include/device.h), waitPeer() in src/device/prims_simple.h. Slots stay occupied from one op
 * to the next. So a member that only sends may be several ops ahead of a missing one.
 *
 *  - broadcast (src/device/broadcast.h): the root sends, each member passes on, the last one only
 *    receives; reduce (reduce.h) the same way in reverse to the root. One step per slice.
 *  - all_reduce, all_gather, reduce_scatter along the ring (all_reduce.h, all_gather.h,
 *    reduce_scatter.h): 2n - 1 or n phases, the first only sends, the last only receives; two
 *    slices of two steps each (src/include/collectives.h).
 *  - all_reduce along a tree (runTreeSplit() in all_reduce.h): up and down at the same time.
 *  - send, receive and NCCL's compositions of them, all_to_all, gather, scatter (sendrecv.h): each
 *    pair by itself, in order. A send ends when it got free slots, a receive when its data came.
 *  - Some transports have no slots: a member stays until its peer has read its data
 *    (~Primitives() in prims_simple.h, NetRegMode and DirectRead).
 *
 * We draw four properties of a comm's route at random, and hide them from the engine: the ring's
 * order, the use of a tree, the use of slots, and the size of a slice.
 *
 * Not simulated: several channels (each would repeat the same), LL and LL128 (the same order, other
 * slots), PAT, NVLS and CollNet.
 */
#include <stdlib.h>

#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"
#include "model/signature.h"

#define STEPS 8u /* NCCL_STEPS */
/* Limit on the slices per op. More slices would show nothing new and take proportionally longer. */
#define CHAIN_SLICES 24u
#define RING_ROUNDS 3u
#define NEVER UINT64_MAX

/* Total numbers of steps sent and taken. Their difference is in the receiver's slots. */
struct edge {
	uint64_t sent, taken;
};

struct flow {
	uint32_t n;
	uint32_t *order, *place; /* the ring: member by position, and position by member */
	struct edge *ring;       /* by position: the edge to the next member of the ring */
	struct edge *up, *down;  /* by position: the edges to and from the parent in the tree */
	uint32_t slice_shift;    /* a slice has 1 << slice_shift bytes */
	bool is_tree, has_no_slots;
	uint32_t *queue; /* positions that may advance */
	bool *is_queued;
	uint32_t n_queue;
};

void flow_free(struct flow *f)
{
	if (!f)
		return;
	free(f->order);
	free(f->place);
	free(f->ring);
	free(f->up);
	free(f->down);
	free(f->queue);
	free(f->is_queued);
	free(f);
}

/* ---- drawn properties ---- */

/*
 * Returns the nth drawn number of a comm. It depends only on scenario and comm, so the order of
 * evaluation does not matter.
 */
static uint64_t drawn(const struct cluster *c, const struct comm *comm, uint64_t nth)
{
	uint64_t index = (uint64_t)(comm - c->comms);

	return cw_hash_mix64(cw_hash_mix64((uint64_t)c->s->seed << 20 | index) + nth);
}

static void draw_ring(const struct cluster *c, const struct comm *comm, struct flow *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		f->order[i] = i;
	for (uint32_t i = f->n; i > 1; i--) {
		uint32_t other = (uint32_t)(drawn(c, comm, i) % i), kept = f->order[i - 1];

		f->order[i - 1] = f->order[other];
		f->order[other] = kept;
	}
	for (uint32_t i = 0; i < f->n; i++)
		f->place[f->order[i]] = i;
}

static struct flow *flow_of(const struct cluster *c, struct comm *comm)
{
	struct flow *f = comm->flow;

	if (f)
		return f;
	f = cw_or_exit(calloc(1, sizeof(*f)));
	f->n = comm->nranks;
	f->order = cw_or_exit(calloc(f->n, sizeof(*f->order)));
	f->place = cw_or_exit(calloc(f->n, sizeof(*f->place)));
	f->ring = cw_or_exit(calloc(f->n, sizeof(*f->ring)));
	f->up = cw_or_exit(calloc(f->n, sizeof(*f->up)));
	f->down = cw_or_exit(calloc(f->n, sizeof(*f->down)));
	f->queue = cw_or_exit(calloc(f->n, sizeof(*f->queue)));
	f->is_queued = cw_or_exit(calloc(f->n, sizeof(*f->is_queued)));
	draw_ring(c, comm, f);
	/*
	 * A slice has 256 bytes to 4 MiB, so an op of these jobs occupies all slots, some, or one.
	 */
	f->slice_shift = 8 + (uint32_t)(drawn(c, comm, 1000001) % 15);
	f->is_tree = drawn(c, comm, 1000002) % 4 == 0;
	f->has_no_slots = drawn(c, comm, 1000003) % 5 == 0;
	comm->flow = f;
	return f;
}

static uint64_t slices_of(const struct flow *f, uint64_t bytes, uint64_t most)
{
	uint64_t n = (bytes >> f->slice_shift) + (bytes << (64 - f->slice_shift) != 0);

	return n == 0 ? 1 : n > most ? most : n;
}

/* ---- collectives: slice by slice ---- */

static bool is_gone(const struct rank *r)
{
	return r->ended_ns != 0;
}

static struct member *at_place(const struct comm *comm, uint32_t place)
{
	return &comm->members[comm->flow->order[place]];
}

static void wake(struct flow *f, uint32_t place)
{
	if (f->is_queued[place])
		return;
	f->is_queued[place] = true;
	f->queue[f->n_queue++] = place;
}

/* The work of a member on one slice of an op along the ring. */
struct slice {
	bool recv, send;
	uint32_t steps;
};

static bool is_chain(unsigned kind)
{
	return kind == CW_OP_BROADCAST || kind == CW_OP_REDUCE;
}

static uint64_t phases_of(const struct flow *f, unsigned kind)
{
	return kind == CW_OP_ALL_REDUCE ? 2 * (uint64_t)f->n - 1 : f->n;
}

static uint64_t n_slices(const struct flow *f, const struct cw_op *op)
{
	if (is_chain(op->kind))
		return slices_of(f, op->bytes, CHAIN_SLICES);
	return 2 * phases_of(f, op->kind) * slices_of(f, op->bytes / STEPS, RING_ROUNDS);
}

static uint32_t place_before(const struct flow *f, uint32_t place)
{
	return place ? place - 1 : f->n - 1;
}

static uint32_t place_after(const struct flow *f, uint32_t place)
{
	return place + 1 < f->n ? place + 1 : 0;
}

static bool has_root(const struct flow *f, const struct cw_op *op, uint32_t place)
{
	return op->root >= 0 && (uint32_t)op->root < f->n && f->place[op->root] == place;
}

/* Returns the member's work on a slice of a chain (broadcast or reduce). All slices are alike. */
static struct slice chain_slice(const struct flow *f, const struct cw_op *op, uint32_t place)
{
	if (op->kind == CW_OP_BROADCAST)
		return (struct slice){ .recv = !has_root(f, op, place),
				       .send = !has_root(f, op, place_after(f, place)),
				       .steps = 1 };
	return (struct slice){ .recv = !has_root(f, op, place_before(f, place)),
			       .send = !has_root(f, op, place),
			       .steps = 1 };
}

static struct slice ring_slice(uint64_t phase, uint64_t phases)
{
	return (struct slice){ .recv = phase > 0, .send = phase < phases - 1, .steps = 2 };
}

static bool may_send(const struct edge *e, uint32_t steps)
{
	return e->sent + steps <= e->taken + STEPS;
}

static bool may_take(const struct edge *e, uint32_t steps)
{
	return e->taken + steps <= e->sent;
}

/* Moves as many of the member's slices as possible, and then wakes the neighbours. */
static void ring_run(struct flow *f, struct member *m, const struct cw_op *op)
{
	uint32_t place = f->place[m->comm_rank];
	struct edge *in = &f->ring[place_before(f, place)], *out = &f->ring[place];
	uint64_t phases = phases_of(f, op->kind), n = n_slices(f, op), from = m->flow_at;
	uint64_t phase = from / 2 % phases;
	bool along_chain = is_chain(op->kind);
	struct slice s = { 0 };

	if (n > m->flow_stop)
		n = m->flow_stop;
	if (along_chain)
		s = chain_slice(f, op, place);
	for (; m->flow_at < n; m->flow_at++) {
		if (!along_chain)
			s = ring_slice(phase, phases);
		if ((s.recv && !may_take(in, s.steps)) || (s.send && !may_send(out, s.steps)))
			break;
		in->taken += s.recv ? s.steps : 0;
		out->sent += s.send ? s.steps : 0;
		phase += m->flow_at % 2;
		if (phase == phases)
			phase = 0;
	}
	if (m->flow_at == from)
		return;
	wake(f, place_before(f, place));
	wake(f, place_after(f, place));
}

static bool ring_is_done(const struct flow *f, const struct member *m, const struct cw_op *op)
{
	const struct edge *out = &f->ring[f->place[m->comm_rank]];

	return m->flow_at >= n_slices(f, op) && m->flow_at < m->flow_stop &&
	       (!f->has_no_slots || out->sent == out->taken);
}

/* ---- along a tree ---- */

static uint32_t child_of(const struct flow *f, uint32_t place, uint32_t nth)
{
	uint32_t child = 2 * place + 1 + nth;

	return child < f->n ? child : CW_SNAP_NONE;
}

static void wake_tree(struct flow *f, uint32_t place)
{
	for (uint32_t i = 0; i < 2; i++)
		if (child_of(f, place, i) != CW_SNAP_NONE)
			wake(f, child_of(f, place, i));
	if (place)
		wake(f, (place - 1) / 2);
}

static bool children_have_sent(const struct flow *f, uint32_t place)
{
	for (uint32_t i = 0; i < 2; i++)
		if (child_of(f, place, i) != CW_SNAP_NONE &&
		    !may_take(&f->up[child_of(f, place, i)], 1))
			return false;
	return true;
}

static bool children_have_room(const struct flow *f, uint32_t place)
{
	for (uint32_t i = 0; i < 2; i++)
		if (child_of(f, place, i) != CW_SNAP_NONE &&
		    !may_send(&f->down[child_of(f, place, i)], 1))
			return false;
	return true;
}

static void move_up(struct flow *f, struct member *m, uint32_t place)
{
	for (uint32_t i = 0; i < 2; i++)
		if (child_of(f, place, i) != CW_SNAP_NONE)
			f->up[child_of(f, place, i)].taken++;
	if (place)
		f->up[place].sent++;
	m->flow_at++;
}

static void move_down(struct flow *f, struct member *m, uint32_t place)
{
	for (uint32_t i = 0; i < 2; i++)
		if (child_of(f, place, i) != CW_SNAP_NONE)
			f->down[child_of(f, place, i)].sent++;
	if (place)
		f->down[place].taken++;
	m->flow_down_at++;
}

/* Advances the member along the tree by one slice of n. False if it cannot advance. */
static bool tree_step(struct flow *f, struct member *m, uint32_t place, uint64_t n)
{
	bool may_go_up, may_go_down;

	if (m->flow_at + m->flow_down_at >= m->flow_stop)
		return false;
	may_go_up = m->flow_at < n && children_have_sent(f, place) &&
		    (place ? may_send(&f->up[place], 1) : children_have_room(f, place));
	may_go_down = m->flow_down_at < n && children_have_room(f, place) &&
		      (place ? may_take(&f->down[place], 1) : may_go_up);
	if (place ? may_go_up : may_go_up && may_go_down)
		move_up(f, m, place);
	if (may_go_down)
		move_down(f, m, place);
	return may_go_up || may_go_down;
}

static void tree_run(struct flow *f, struct member *m, const struct cw_op *op)
{
	uint64_t n = slices_of(f, op->bytes, CHAIN_SLICES);
	uint32_t place = f->place[m->comm_rank];
	bool has_moved = false;

	while (tree_step(f, m, place, n))
		has_moved = true;
	if (has_moved)
		wake_tree(f, place);
}

static bool tree_is_done(const struct flow *f, const struct member *m, const struct cw_op *op)
{
	uint64_t n = slices_of(f, op->bytes, CHAIN_SLICES);

	return m->flow_at >= n && m->flow_down_at >= n && m->flow_stop == NEVER;
}

/* ---- members that can advance ---- */

static bool goes_along_tree(const struct flow *f, const struct cw_op *op)
{
	return f->is_tree && op->kind == CW_OP_ALL_REDUCE;
}

static bool is_pairwise(unsigned kind)
{
	return kind == CW_OP_ALL_TO_ALL || kind == CW_OP_GATHER || kind == CW_OP_SCATTER;
}

static bool moves_along(const struct cw_op *op)
{
	return !(op->flags & CW_OPF_NO_COUNT) && cw_op_is_collective(op->kind) &&
	       !is_pairwise(op->kind);
}

/*
 * Begins the item's next collective. The collectives of an item run one after the other, as in one
 * kernel.
 */
static void next_collective(struct member *m, const struct item *item, uint64_t from)
{
	m->flow_op = 0;
	m->flow_at = m->flow_down_at = 0;
	for (uint64_t i = from; i < item->first_op + item->n_ops && !m->flow_op; i++)
		if (moves_along(member_op(m, i)))
			m->flow_op = i;
}

static void get_on(struct flow *f, struct member *m)
{
	while (m->flow_op && !is_gone(m->rank)) {
		const struct cw_op *op = member_op(m, m->flow_op);
		bool tree = goes_along_tree(f, op);

		if (tree)
			tree_run(f, m, op);
		else
			ring_run(f, m, op);
		if (!(tree ? tree_is_done(f, m, op) : ring_is_done(f, m, op)))
			return;
		next_collective(m, m->in_flight, m->flow_op + 1);
		device_part_done(m->in_flight);
	}
}

static void move_data(struct comm *comm)
{
	struct flow *f = comm->flow;

	while (f->n_queue) {
		uint32_t place = f->queue[--f->n_queue];

		f->is_queued[place] = false;
		get_on(f, at_place(comm, place));
	}
}

/* ---- pairs ---- */

static struct half **find_half(struct comm *comm, uint32_t me, uint32_t peer, uint64_t seq,
			       bool is_send)
{
	struct pair *pairs = comm->members[me].pairs;
	struct half **h;

	for (h = pairs ? &pairs[peer].halves : NULL; h && *h; h = &(*h)->next)
		if ((*h)->seq == seq && (*h)->is_send == is_send)
			return h;
	return NULL;
}

static void add_half(struct comm *comm, struct half *h)
{
	struct half **first = &comm->members[h->me].pairs[h->peer].halves;

	h->next = *first;
	*first = h;
}

/*
 * Puts sends from `me` to `peer` into free slots, in order. seq is the first send without its
 * receive.
 */
static void fill_slots(struct comm *comm, uint32_t me, uint32_t peer, uint64_t seq)
{
	const struct flow *f = comm->flow;
	uint64_t taken = 0;

	for (; !f->has_no_slots; seq++) {
		struct half **h = find_half(comm, me, peer, seq, true);
		uint64_t n = h ? slices_of(f, (*h)->bytes, CHAIN_SLICES) : 0;

		if (!h || taken + n > STEPS)
			return;
		taken += n;
		if (!(*h)->item)
			continue;
		if (is_gone((*h)->item->rank))
			return;
		device_part_done((*h)->item);
		(*h)->item = NULL;
	}
}

/*
 * Joins a send and a receive. If the receive expects more data than the send has, the receive never
 * finishes, but the send does.
 */
static void meet(struct half *send, struct item *receiver, uint64_t wanted)
{
	if (send->item)
		device_part_done(send->item);
	if (send->bytes >= wanted)
		device_part_done(receiver);
}

static void post_send(struct item *item, uint32_t peer, uint64_t bytes)
{
	struct member *m = item->m;
	struct comm *comm = m->comm;
	uint64_t seq = ++m->pairs[peer].sends;
	struct half **found = find_half(comm, peer, m->comm_rank, seq, false), *h;
	struct half send = { .me = m->comm_rank,
			     .peer = peer,
			     .seq = seq,
			     .bytes = bytes,
			     .is_send = true,
			     .item = item };

	if (found && !is_gone((*found)->item->rank)) {
		h = *found;
		*found = h->next;
		meet(&send, h->item, h->bytes);
		free(h);
		return;
	}
	h = cw_or_exit(malloc(sizeof(*h)));
	*h = send;
	add_half(comm, h);
	fill_slots(comm, m->comm_rank, peer,
		   comm->members[peer].pairs ? comm->members[peer].pairs[m->comm_rank].recvs + 1
					     : 1);
}

static void post_recv(struct item *item, uint32_t peer, uint64_t bytes)
{
	struct member *m = item->m;
	struct comm *comm = m->comm;
	uint64_t seq = ++m->pairs[peer].recvs;
	struct half **found = find_half(comm, peer, m->comm_rank, seq, true), *h;

	/* We take data from the slots even if their sender is gone. */
	if (found && (!(*found)->item || !is_gone((*found)->item->rank))) {
		h = *found;
		*found = h->next;
		meet(h, item, bytes);
		free(h);
		fill_slots(comm, peer, m->comm_rank, seq + 1);
		return;
	}
	h = cw_or_exit(malloc(sizeof(*h)));
	*h = (struct half){
		.me = m->comm_rank, .peer = peer, .seq = seq, .bytes = bytes, .item = item
	};
	add_half(comm, h);
}

/* Posts the sends and receives that make up an op. Without `post`, only counts them. */
static uint32_t pairs_of(struct item *item, const struct cw_op *op, bool post)
{
	const struct member *m = item->m;
	uint32_t me = m->comm_rank, n = 0, first = 0, end = m->comm->nranks;
	bool is_root = op->root == (int32_t)me, to_all = op->kind == CW_OP_ALL_TO_ALL;

	if (cw_op_is_p2p(op->kind)) {
		if (op->peer < 0 || (uint32_t)op->peer >= end)
			return 0;
		first = (uint32_t)op->peer;
		end = first + 1;
	}
	for (uint32_t peer = first; peer < end; peer++) {
		bool with_root = op->root == (int32_t)peer;
		bool sends = to_all || (op->kind == CW_OP_GATHER && with_root) ||
			     (op->kind == CW_OP_SCATTER && is_root) ||
			     (op->kind == CW_OP_SEND && op->peer == (int32_t)peer);
		bool recvs = to_all || (op->kind == CW_OP_SCATTER && with_root) ||
			     (op->kind == CW_OP_GATHER && is_root) ||
			     (op->kind == CW_OP_RECV && op->peer == (int32_t)peer);

		if (peer == me)
			continue;
		n += sends + recvs;
		if (post && sends)
			post_send(item, peer, op->bytes);
		if (post && recvs)
			post_recv(item, peer, op->bytes);
	}
	return n;
}

/* ---- the ops of an item ---- */

static uint32_t n_parts(struct item *item)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < item->n_ops; i++) {
		const struct cw_op *op = member_op(item->m, item->first_op + i);

		if (op->flags & CW_OPF_NO_COUNT)
			continue;
		n += moves_along(op) ? 1 : pairs_of(item, op, false);
	}
	return n;
}

/* Draws where a device gets stuck: before the op, anywhere in it, or after its own part. */
static void draw_stop(struct item *item)
{
	struct member *m = item->m;
	const struct cw_op *op = m->flow_op ? member_op(m, m->flow_op) : NULL;
	uint64_t n = 0;

	m->flow_stop = NEVER;
	if (!item->is_wedged)
		return;
	if (op && goes_along_tree(m->comm->flow, op))
		n = 2 * slices_of(m->comm->flow, op->bytes, CHAIN_SLICES);
	else if (op)
		n = n_slices(m->comm->flow, op);
	m->flow_stop = cluster_random(item->rank->c, n + 1);
}

void flow_begin(struct item *item)
{
	struct member *m = item->m;
	struct flow *f = flow_of(item->rank->c, m->comm);
	bool is_mute;

	if (!m->pairs)
		m->pairs = cw_or_exit(calloc(m->comm->nranks, sizeof(*m->pairs)));
	/* A wedged item has one part more than members can complete. */
	item->n_open = n_parts(item) + item->is_wedged;
	next_collective(m, item, item->first_op);
	draw_stop(item);
	is_mute = item->is_wedged && cluster_random(item->rank->c, 2);
	for (uint32_t i = 0; i < item->n_ops && !is_mute; i++) {
		const struct cw_op *op = member_op(m, item->first_op + i);

		if (!(op->flags & CW_OPF_NO_COUNT) && !moves_along(op))
			(void)pairs_of(item, op, true);
	}
	if (m->flow_op)
		wake(f, f->place[m->comm_rank]);
	move_data(m->comm);
}
