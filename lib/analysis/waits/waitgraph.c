/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We build the graph comm by comm. position.h gives the position of each member, and each member
 * that waits gives a gate. We sort the waiters by coll_seq and the late members by their progress.
 * One pass over both lists then gives each gate only the late members that the gate below lacks. At
 * the end we invert the lists from gates to ranks, and search for cycles.
 *
 * If we only guess that a member waits, it makes no gate unless another member is certainly
 * missing. This file makes the gates of collectives. waitgraph_p2p.c and waitgraph_host.c make the
 * other gates.
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

void builder_note_waiter(struct builder *b, struct gate *gate, uint32_t member)
{
	const struct position *p = &b->positions[member];
	uint32_t rank = b->c->members[member].rank;
	int64_t since = p->op ? p->op->enter_ns : b->c->members[member].progress_ns;
	bool is_older;

	if (gate->oldest == CW_SNAP_NONE)
		is_older = true;
	else if (since != gate->since_ns)
		is_older = gate->since_ns == 0 || (since && since < gate->since_ns);
	else
		is_older = b->snap->ranks[rank].rank < b->snap->ranks[gate->oldest].rank;
	if (is_older) {
		gate->since_ns = since;
		gate->oldest = rank;
		/*
		 * A call that the record has lost has no kind, so the gate keeps the call of
		 * another member.
		 */
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

/* Collects the members that wait in a collective, sorted by coll_seq. Returns their number. */
static uint32_t collect_waiters(struct builder *b)
{
	bool sorted = true;
	uint32_t n = 0;

	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];

		if (!(p->flags & POS_WAITS) || (p->flags & POS_INIT) || !p->op ||
		    (!cw_op_is_collective(p->op->kind) && !position_is_replay(p->op) &&
		     !position_is_lost(p->op)))
			continue;
		b->waiters[n] = (struct waiter){ .seq = p->op->coll_seq, .member = m };
		sorted = sorted && (!n || b->waiters[n - 1].seq <= b->waiters[n].seq);
		n++;
	}
	if (!sorted)
		qsort(b->waiters, n, sizeof(*b->waiters), by_seq);
	return n;
}

/*
 * Collects the visible members whose progress is less than `seq`, sorted by progress in ascending
 * order. Returns their number.
 */
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

/* True for an op in which each member exchanges data directly with the root. */
static bool is_pairwise(unsigned kind)
{
	return kind == CW_OP_SCATTER || kind == CW_OP_GATHER;
}

/*
 * Returns the root if the member waits for the root alone. Returns the comm's size if the member
 * may wait for any member that has not come. In a reduce the data pass through other members on
 * their way to the root. So a member that is not the root may wait for the members before it.
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
	 * Once the root has come, the member may wait for any late member on the way of the data.
	 * NCCL runs a broadcast along a ring, and a root's sends in batches. If the root has
	 * completed all its sends, the data have arrived.
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

/*
 * Finds a lost call in the records of other members, because such a record knows the kind of the
 * call. Returns the lost call itself if no record has it.
 */
static const struct cw_op *call_of(const struct builder *b, const struct cw_op *op)
{
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct cw_snap_member *member = &b->c->members[m];
		const struct cw_op *ends[2];

		if (member->rank == CW_SNAP_NONE)
			continue;
		ends[0] = member->pending;
		ends[1] = member->last;
		for (unsigned i = 0; i < 2; i++)
			if (ends[i] && position_is_step(ends[i]) &&
			    ends[i]->coll_seq == op->coll_seq)
				return ends[i];
		for (uint32_t i = 0; i < member->n_window; i++)
			if (position_is_step(&member->window[i]) &&
			    member->window[i].coll_seq == op->coll_seq)
				return &member->window[i];
	}
	return op;
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

/*
 * Adds the gate of a collective. Its missing members begin at late[*from]. The late members before
 * that are already missing at the gate `lower`.
 */
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

/*
 * Makes the gates of the comm's collectives from the sorted waiters. Waiters for the same root in
 * one call share a gate. Waiters for all members in one call share a gate, too.
 */
static int add_collectives(struct builder *b)
{
	uint32_t n = collect_waiters(b), n_late, from = 0;
	uint32_t common = CW_SNAP_NONE, rooted = CW_SNAP_NONE, rooted_at = CW_SNAP_NONE;
	const struct cw_op *found = NULL; /* the call of the last waiter, found in another record if
					     its own record has lost it */

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

		/*
		 * A waiter that we only guess makes no gate unless another member is certainly
		 * missing.
		 */
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

/*
 * Notes the members that may be inside an op without progress writes. If any member is known to
 * have completed that op, no member is noted: such an op blocks no member.
 */
static void note_unobserved(struct builder *b)
{
	uint64_t furthest = 0;

	for (uint32_t m = 0; m < b->c->nranks; m++)
		if (b->c->members[m].rank != CW_SNAP_NONE &&
		    (b->c->members[m].known & CW_KNOWN_COMPLETED) &&
		    b->c->members[m].coll_completed > furthest)
			furthest = b->c->members[m].coll_completed;
	for (uint32_t m = 0; m < b->c->nranks; m++) {
		const struct position *p = &b->positions[m];
		/* If the device has not reached `op`, only ops before it are unobserved. */
		bool behind = p->flags & POS_BEHIND;

		if (!(p->flags & POS_UNOBSERVED) ||
		    (p->op->coll_seq && furthest + behind >= p->op->coll_seq))
			continue;
		b->g->unobserved[b->c->members[m].rank] = b->comm;
		b->n_unobserved++;
	}
}

/*
 * Notes the op that is enqueued but that the member's device has not reached. If a rank has such
 * ops in several comms, we keep the oldest.
 */
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

/* ---- the whole graph ---- */

static int add_comm(struct builder *b, uint32_t comm)
{
	bool anybody_waits = false, anybody_unobserved = false;
	int r;

	b->comm = comm;
	b->c = &b->snap->comms[comm];
	b->n_unseen = b->n_unobserved = 0;
	if (b->c->nranks < 2)
		return 0; /* a single member waits for no other */
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

/* Gives every gate its list of waiters, in the order in which we noted the waits. */
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

/* Lists the gates of each rank: the gates of rank r are list[start[r]] … list[start[r + 1] - 1]. */
static int invert(const struct waitgraph *g, struct cw_arena *a, enum gate_list which,
		  uint32_t **ret_start, uint32_t **ret_list)
{
	uint32_t *start = cw_arena_new_array(a, uint32_t, (size_t)g->n_ranks + 2);
	const uint32_t *ranks;
	uint32_t *list, n;

	if (!start)
		return -ENOMEM;
	/*
	 * We count into start[r + 2]. The loop that fills the list then advances start[r + 1] to
	 * its end.
	 */
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
	/* A member waits at no more than one gate. */
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
