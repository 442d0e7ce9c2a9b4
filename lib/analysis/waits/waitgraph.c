/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comm by comm: position.h says where each member stands, and the members that wait give the
 * gates. Waiters are sorted by coll_seq and latecomers by how far they have come, so one pass over
 * both gives every gate only the latecomers that the gate below has not. Then the lists are turned
 * round, from rank to gates, and cycles are looked for.
 *
 * A member of which it is only guessed that it waits makes no gate where nobody is certainly
 * missing. What stands in collectives is here, the rest in waitgraph_p2p.c and waitgraph_host.c.
 */
#include "analysis/waits/waitgraph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/waits/waitgraph_builder.h"
#include "analysis/waits/waitgraph_scc.h"

struct gate *builder_add_gate(struct builder *b, enum gate_kind kind, uint64_t seq,
			      uint32_t op_kind)
{
	struct waitgraph *g = b->g;
	struct gate *gate;

	if (g->n_gates == g->cap_gates) {
		uint32_t cap = g->cap_gates ? g->cap_gates * 2 : 64;
		struct gate *more = cw_arena_new_array(b->arena, struct gate, cap);

		if (!more)
			return NULL;
		if (g->n_gates)
			memcpy(more, g->gates, g->n_gates * sizeof(*more));
		g->gates = more;
		g->cap_gates = cap;
	}
	gate = &g->gates[g->n_gates++];
	*gate = (struct gate){ .comm = b->comm,
			       .kind = kind,
			       .seq = seq,
			       .op_kind = op_kind,
			       .n_unobserved = b->n_unobserved,
			       .lower = CW_SNAP_NONE,
			       .upper = CW_SNAP_NONE,
			       .oldest = CW_SNAP_NONE };
	return gate;
}

/* When the member began to wait, as far as known. */
static int64_t waiting_since(const struct builder *b, uint32_t member)
{
	const struct cw_op *op = b->positions[member].op;

	return op ? op->enter_ns : b->c->members[member].progress_ns;
}

/* Earliest first, then lowest label: never by index, which differs from snapshot to snapshot. */
static bool waited_longer(const struct builder *b, int64_t since, uint32_t rank,
			  const struct gate *gate)
{
	if (gate->oldest == CW_SNAP_NONE)
		return true;
	if (since != gate->since_ns)
		return gate->since_ns == 0 || (since && since < gate->since_ns);
	return b->snap->ranks[rank].rank < b->snap->ranks[gate->oldest].rank;
}

void builder_note_waiter(struct builder *b, struct gate *gate, uint32_t member)
{
	const struct position *p = &b->positions[member];
	uint32_t rank = b->c->members[member].rank;
	int64_t since = waiting_since(b, member);

	if (waited_longer(b, since, rank, gate)) {
		gate->since_ns = since;
		gate->oldest = rank;
		/* A lost call has no kind: its gate keeps what another member knows of it. */
		if (!gate->op || !p->op || !position_is_lost(p->op))
			gate->op = p->op;
	}
	if (p->flags & POS_SOFT)
		gate->n_soft++;
	gate->n_waiters++;
	b->entries[b->n_entries++] =
		(struct entry){ .rank = rank, .gate = (uint32_t)(gate - b->g->gates) };
}

/* ---- collectives ---- */

static int by_seq(const void *a, const void *b)
{
	const struct waiter *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

static int by_arrival(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	if (x->arrived != y->arrived)
		return x->arrived < y->arrived ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

static bool waits_in_collective(const struct position *p)
{
	return (p->flags & POS_WAITS) && !(p->flags & POS_INIT) && p->op &&
	       (cw_op_is_collective(p->op->kind) || position_is_replay(p->op) ||
		position_is_lost(p->op));
}

/* Members that wait, by coll_seq. */
static uint32_t collect_waiters(struct builder *b)
{
	bool sorted = true;
	uint32_t n = 0;

	for (uint32_t m = 0; m < b->c->nranks; m++) {
		if (!waits_in_collective(&b->positions[m]))
			continue;
		b->waiters[n] = (struct waiter){ .seq = b->positions[m].op->coll_seq, .member = m };
		sorted = sorted && (!n || b->waiters[n - 1].seq <= b->waiters[n].seq);
		n++;
	}
	if (!sorted)
		qsort(b->waiters, n, sizeof(*b->waiters), by_seq);
	return n;
}

/* Visible members that are not as far as `seq`, those furthest behind first. */
static uint32_t collect_late(struct builder *b, uint64_t seq)
{
	bool sorted = true;
	uint32_t n = 0;

	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];

		if (!(p->flags & (POS_SEEN | POS_DEAD)) || p->arrived >= seq)
			continue;
		b->late[n] = (struct late){ .arrived = p->arrived, .member = m };
		sorted = sorted && (!n || b->late[n - 1].arrived <= b->late[n].arrived);
		n++;
	}
	if (!sorted)
		qsort(b->late, n, sizeof(*b->late), by_arrival);
	return n;
}

/* What goes from one pair of members to the next by itself: nobody else is passed through. */
static bool is_pairwise(unsigned kind)
{
	return kind == CW_OP_SCATTER || kind == CW_OP_GATHER;
}

/*
 * The root the member waits for, or the comm's size when it may wait for anybody who has not come.
 * A reduce passes through all members before its root: whoever stands in it without the root may
 * still wait for those before it.
 */
static uint32_t waits_for_root(const struct builder *b, const struct waiter *w,
			       const struct cw_op *op)
{
	const struct cw_snap_member *root;
	const struct position *p;

	if (op->kind != CW_OP_BROADCAST && !is_pairwise(op->kind))
		return b->c->nranks;
	if (op->root < 0 || (uint32_t)op->root >= b->c->nranks || (uint32_t)op->root == w->member)
		return b->c->nranks;
	/*
	 * Once the root has come, what is left to wait for are the members the data passes through
	 * on its way (NCCL runs a broadcast along a ring, and a root's sends in batches): any of
	 * those that have not come. Where the root has done with all its sends, they are there.
	 */
	p = &b->positions[op->root];
	root = &b->c->members[op->root];
	if (is_pairwise(op->kind) && (p->flags & POS_SEEN) && (root->known & CW_KNOWN_COMPLETED) &&
	    root->coll_completed >= w->seq)
		return (uint32_t)op->root;
	if ((p->flags & (POS_SEEN | POS_DEAD)) && p->arrived >= w->seq)
		return b->c->nranks;
	return (uint32_t)op->root;
}

static const struct cw_op *find_call(const struct cw_snap_member *m, uint64_t seq)
{
	const struct cw_op *ends[] = { m->pending, m->last };

	for (unsigned i = 0; i < 2; i++)
		if (ends[i] && position_is_step(ends[i]) && ends[i]->coll_seq == seq)
			return ends[i];
	for (uint32_t i = 0; i < m->n_window; i++)
		if (position_is_step(&m->window[i]) && m->window[i].coll_seq == seq)
			return &m->window[i];
	return NULL;
}

/* What another member's record has of the lost call; the lost call where none has it. */
static const struct cw_op *call_of(const struct builder *b, const struct cw_op *op)
{
	const struct cw_op *found = NULL;

	for (uint32_t m = 0; m < b->c->nranks && !found; m++)
		if (b->c->members[m].rank != CW_SNAP_NONE)
			found = find_call(&b->c->members[m], op->coll_seq);
	return found ? found : op;
}

static uint32_t *copy_ranks(struct builder *b, const struct late *late, uint32_t n)
{
	uint32_t *ranks = cw_arena_new_array(b->arena, uint32_t, n);

	for (uint32_t i = 0; ranks && i < n; i++)
		ranks[i] = b->c->members[late[i].member].rank;
	return ranks;
}

static int add_root_gate(struct builder *b, const struct waiter *w, uint32_t root,
			 const struct cw_op *call)
{
	struct gate *gate = builder_add_gate(b, GATE_ROOT, w->seq, call->kind);
	struct late one = { .member = root };

	if (!gate)
		return -ENOMEM;
	gate->op = call;
	if (!(b->positions[root].flags & (POS_SEEN | POS_DEAD))) {
		gate->n_unseen = 1;
		return 0;
	}
	if (b->positions[root].arrived >= w->seq)
		return 0;
	gate->missing = copy_ranks(b, &one, 1);
	gate->n_missing = gate->n_missing_all = 1;
	return gate->missing ? 0 : -ENOMEM;
}

/* Members late[*from] … that are late for w->seq, but were not for the gate below. */
static int add_common_gate(struct builder *b, const struct waiter *w, const struct cw_op *call,
			   uint32_t n_late, uint32_t *from, uint32_t lower)
{
	struct gate *gate = builder_add_gate(b, GATE_COLLECTIVE, w->seq, call->kind);
	uint32_t to = *from;

	if (!gate)
		return -ENOMEM;
	gate->op = call;
	while (to < n_late && b->late[to].arrived < w->seq)
		to++;
	gate->missing = copy_ranks(b, &b->late[*from], to - *from);
	if (!gate->missing)
		return -ENOMEM;
	gate->n_missing = to - *from;
	gate->n_missing_all = to;
	gate->n_unseen = b->n_unseen;
	gate->lower = lower;
	if (lower != CW_SNAP_NONE)
		b->g->gates[lower].upper = b->g->n_gates - 1;
	*from = to;
	return 0;
}

static int add_collectives(struct builder *b)
{
	uint32_t n = collect_waiters(b), n_late, from = 0;
	uint32_t common = CW_SNAP_NONE, rooted = CW_SNAP_NONE, rooted_at = CW_SNAP_NONE;
	const struct cw_op *found = NULL; /* for the lost calls of one number */

	if (!n)
		return 0;
	n_late = collect_late(b, b->waiters[n - 1].seq);
	for (uint32_t i = 0; i < n; i++) {
		struct waiter *w = &b->waiters[i];
		const struct position *p = &b->positions[w->member];
		struct gate *gates = b->g->gates;
		const struct cw_op *call = p->op;
		uint32_t root;

		if (position_is_lost(call)) {
			if (!found || found->coll_seq != w->seq)
				found = call_of(b, call);
			call = found;
		}
		root = waits_for_root(b, w, call);

		/* A guess needs somebody who is certainly missing. */
		if ((p->flags & POS_GUESSED) && !(n_late && b->late[0].arrived < w->seq))
			continue;
		if (root < b->c->nranks) {
			if (rooted == CW_SNAP_NONE || rooted_at != root ||
			    gates[rooted].seq != w->seq) {
				if (add_root_gate(b, w, root, call) < 0)
					return -ENOMEM;
				rooted = b->g->n_gates - 1;
				rooted_at = root;
			}
			builder_note_waiter(b, &b->g->gates[rooted], w->member);
			continue;
		}
		if (common == CW_SNAP_NONE || gates[common].seq != w->seq) {
			if (add_common_gate(b, w, call, n_late, &from, common) < 0)
				return -ENOMEM;
			common = b->g->n_gates - 1;
		}
		builder_note_waiter(b, &b->g->gates[common], w->member);
	}
	return 0;
}

/* ---- ops without progress writes ---- */

/* What a member completed, all have entered, and no other is held up in. */
static uint64_t furthest_completed(const struct cw_snap_comm *c)
{
	uint64_t furthest = 0;

	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank != CW_SNAP_NONE &&
		    (c->members[m].known & CW_KNOWN_COMPLETED) &&
		    c->members[m].coll_completed > furthest)
			furthest = c->members[m].coll_completed;
	return furthest;
}

static void note_unobserved(struct builder *b)
{
	uint64_t furthest = furthest_completed(b->c);

	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];
		/* Of the op it is behind, only those before it are unobserved. */
		bool behind = p->flags & POS_BEHIND;

		if (!(p->flags & POS_UNOBSERVED) ||
		    (p->op->coll_seq && furthest + behind >= p->op->coll_seq))
			continue;
		b->g->unobserved[b->c->members[m].rank] = b->comm;
		b->n_unobserved++;
	}
}

/* What of the member's is enqueued, and its device has not come to; the oldest of all comms. */
static void note_behind(struct builder *b, uint32_t member)
{
	const struct position *p = &b->positions[member];
	uint32_t rank = b->c->members[member].rank;
	const struct cw_op **oldest;

	if (!(p->flags & POS_BEHIND) || (p->flags & POS_GUESSED) || rank >= b->g->n_ranks)
		return;
	oldest = &b->g->behind[rank];
	if (*oldest && (!p->op->enter_ns || (*oldest)->enter_ns <= p->op->enter_ns))
		return;
	*oldest = p->op;
	b->g->behind_comm[rank] = b->comm;
}

/* ---- the whole ---- */

static int add_comm(struct builder *b, uint32_t comm)
{
	bool anybody_waits = false, anybody_unobserved = false;
	int r;

	b->comm = comm;
	b->c = &b->snap->comms[comm];
	b->n_unseen = b->n_unobserved = 0;
	if (b->c->nranks < 2)
		return 0; /* nobody to wait for */
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		b->positions[m] = position_of(b->snap, &b->c->members[m]);
		if (!(b->positions[m].flags & (POS_SEEN | POS_DEAD)))
			b->n_unseen++;
		note_behind(b, m);
		anybody_waits = anybody_waits || (b->positions[m].flags & POS_WAITS);
		anybody_unobserved = anybody_unobserved || (b->positions[m].flags & POS_UNOBSERVED);
	}
	if (anybody_unobserved)
		note_unobserved(b);
	if (!anybody_waits)
		return 0;
	r = add_collectives(b);
	if (r == 0)
		r = waitgraph_add_p2p(b);
	return r < 0 ? r : waitgraph_add_host(b);
}

/* Gives every gate its list of waiters, in the order they were noted. */
static int fill_waiters(struct builder *b)
{
	struct waitgraph *g = b->g;

	for (uint32_t i = 0; i < g->n_gates; i++) {
		g->gates[i].waiters = cw_arena_new_array(b->arena, uint32_t, g->gates[i].n_waiters);
		if (!g->gates[i].waiters)
			return -ENOMEM;
		g->gates[i].n_waiters = 0;
	}
	for (uint32_t i = 0; i < b->n_entries; i++) {
		struct gate *gate = &g->gates[b->entries[i].gate];

		gate->waiters[gate->n_waiters++] = b->entries[i].rank;
	}
	return 0;
}

enum gate_list { LIST_WAITERS, LIST_MISSING };

static uint32_t list_of(const struct gate *gate, enum gate_list which, const uint32_t **ret)
{
	*ret = which == LIST_WAITERS ? gate->waiters : gate->missing;
	return which == LIST_WAITERS ? gate->n_waiters : gate->n_missing;
}

/* The gates that list each rank: rank r's are list[start[r]] … list[start[r + 1] - 1]. */
static int invert(const struct waitgraph *g, struct cw_arena *a, enum gate_list which,
		  uint32_t **ret_start, uint32_t **ret_list)
{
	uint32_t *start = cw_arena_new_array(a, uint32_t, (size_t)g->n_ranks + 2);
	const uint32_t *ranks;
	uint32_t *list, n;

	if (!start)
		return -ENOMEM;
	/* Counted two places up, so that filling the lists below leaves start[] as promised. */
	for (uint32_t i = 0; i < g->n_gates; i++) {
		n = list_of(&g->gates[i], which, &ranks);
		for (uint32_t k = 0; k < n; k++)
			start[ranks[k] + 2]++;
	}
	for (uint32_t r = 2; r < g->n_ranks + 2; r++)
		start[r] += start[r - 1];
	list = cw_arena_new_array(a, uint32_t, start[g->n_ranks + 1]);
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gates; i++) {
		n = list_of(&g->gates[i], which, &ranks);
		for (uint32_t k = 0; k < n; k++)
			list[start[ranks[k] + 1]++] = i;
	}
	*ret_start = start;
	*ret_list = list;
	return 0;
}

static int builder_init(struct builder *b)
{
	uint32_t largest = 0;
	size_t members = 0;

	for (uint32_t c = 0; c < b->snap->n_comms; c++) {
		members += b->snap->comms[c].nranks;
		if (b->snap->comms[c].nranks > largest)
			largest = b->snap->comms[c].nranks;
	}
	b->positions = cw_arena_new_array(b->arena, struct position, largest);
	b->waiters = cw_arena_new_array(b->arena, struct waiter, largest);
	b->late = cw_arena_new_array(b->arena, struct late, largest);
	b->unseen_at = cw_arena_new_array(b->arena, uint32_t, largest);
	/* A member waits at one gate at most. */
	b->entries = cw_arena_new_array(b->arena, struct entry, members);
	b->by_label = cw_arena_new_array(b->arena, uint32_t, b->snap->n_ranks);
	b->g->unobserved = cw_arena_new_array(b->arena, uint32_t, b->snap->n_ranks);
	b->g->behind = cw_arena_new_array(b->arena, const struct cw_op *, b->snap->n_ranks);
	b->g->behind_comm = cw_arena_new_array(b->arena, uint32_t, b->snap->n_ranks);
	if (!b->positions || !b->waiters || !b->late || !b->unseen_at || !b->entries ||
	    !b->by_label || !b->g->unobserved || !b->g->behind || !b->g->behind_comm)
		return -ENOMEM;
	memset(b->g->unobserved, 0xff, b->snap->n_ranks * sizeof(*b->g->unobserved));
	memset(b->by_label, 0xff, b->snap->n_ranks * sizeof(*b->by_label));
	for (uint32_t i = 0; i < b->snap->n_ranks; i++)
		if (b->snap->ranks[i].rank >= 0 &&
		    (uint32_t)b->snap->ranks[i].rank < b->snap->n_ranks)
			b->by_label[b->snap->ranks[i].rank] = i;
	return 0;
}

int cw_waitgraph_build(const struct cw_snapshot *snap, struct cw_arena *a, struct waitgraph *ret)
{
	struct builder b = { .snap = snap, .arena = a, .g = ret };
	int r;

	*ret = (struct waitgraph){ .n_ranks = snap->n_ranks };
	r = builder_init(&b);
	for (uint32_t c = 0; r == 0 && c < snap->n_comms; c++)
		r = add_comm(&b, c);
	if (r == 0)
		r = fill_waiters(&b);
	if (r == 0)
		r = invert(ret, a, LIST_WAITERS, &ret->wait_start, &ret->waits);
	if (r == 0)
		r = invert(ret, a, LIST_MISSING, &ret->miss_start, &ret->misses);
	return r < 0 ? r : waitgraph_find_cycles(ret, a);
}
