/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meeting is one collective or one message. We sort the entries of all windows into calls twice.
 * The first sort is by meeting, and gives the time at which the last member of the meeting entered.
 * The second sort is by rank and time, and adds up how long each host must have waited for others.
 * A host may run ahead of its device. It did not wait for a meeting that became complete only after
 * the host's next call.
 */
#include "analysis/slow/slow_wait.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analysis/align/position.h"

/*
 * The maximum number of calls that a host has made ahead of the others and may still have to wait
 * in.
 */
#define AHEAD_MAX 256u

/* One entry of a rank into a call. All entries of one meeting have the same key. */
struct entry {
	uint64_t seq;
	uint32_t comm, from, to; /* from, to: comm ranks of a send; CW_SNAP_NONE for a collective */
	uint32_t rank;
	/* pair: number of the sender, receiver and comm, the same for all their sends. */
	size_t slot, pair;
	uint32_t node;
	bool is_send;
	int64_t at_ns;
	int64_t free_ns, free_at_most_ns; /* when the last member of the meeting entered */
};

struct entries {
	struct entry *v;
	size_t n;
};

/*
 * The first time from which we know all calls. of_comm: per comm, all calls of all its members.
 * of_rank: per rank, all calls in all its comms. A window has a fixed number of ops, so it reaches
 * less far back if a step has many ops.
 */
struct reach {
	int64_t *of_comm, *of_rank;
};

/*
 * Returns the time at which the window begins. INT64_MIN = the window has all ops of the member.
 * INT64_MAX = the window is empty.
 */
static int64_t begin_ns(const struct cw_snap_member *m)
{
	if (!m->n_window)
		return INT64_MAX;
	return m->window[0].op_index <= 1 ? INT64_MIN
					  : slow_within_ns(m->window[0].enter_ns, SLOW_TIME_MAX_NS);
}

static int64_t later_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Computes the times of *ret. Returns 0 or -ENOMEM; the caller runs reach_fini() in either case. */
static int reach_init(const struct cw_snapshot *snap, struct reach *ret)
{
	*ret = (struct reach){ .of_comm = calloc(snap->n_comms + 1u, sizeof(int64_t)),
			       .of_rank = calloc(snap->n_ranks + 1u, sizeof(int64_t)) };
	if (!ret->of_comm || !ret->of_rank)
		return -ENOMEM;
	for (uint32_t r = 0; r < snap->n_ranks; r++)
		ret->of_rank[r] = INT64_MIN;
	for (uint32_t c = 0; c < snap->n_comms; c++) {
		ret->of_comm[c] = INT64_MIN;
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];
			int64_t ns = begin_ns(member);

			ret->of_comm[c] = later_ns(ret->of_comm[c], ns);
			if (member->rank < snap->n_ranks && ns != INT64_MAX)
				ret->of_rank[member->rank] =
					later_ns(ret->of_rank[member->rank], ns);
		}
	}
	return 0;
}

static void reach_fini(struct reach *reach)
{
	free(reach->of_comm);
	free(reach->of_rank);
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_meeting(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int r = compare(a->comm, b->comm);

	r = r ? r : compare(a->from, b->from);
	r = r ? r : compare(a->to, b->to);
	return r ? r : compare(a->seq, b->seq);
}

static int by_rank(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int r = compare(a->rank, b->rank);

	if (r == 0 && a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return r ? r : compare(a->slot, b->slot);
}

static void add(struct entries *e, struct entry entry, uint32_t me, const struct cw_op *op)
{
	bool is_p2p =
		cw_op_is_p2p(op->kind) && op->p2p_seq && op->peer >= 0 && position_op_counts(op);
	bool is_send = op->kind == CW_OP_SEND;
	uint32_t peer = (uint32_t)op->peer;

	if (!is_p2p && !position_is_step(op))
		return;
	entry.seq = is_p2p ? op->p2p_seq : op->coll_seq;
	entry.from = !is_p2p ? CW_SNAP_NONE : is_send ? me : peer;
	entry.to = !is_p2p ? CW_SNAP_NONE : is_send ? peer : me;
	entry.at_ns = slow_within_ns(op->enter_ns, SLOW_TIME_MAX_NS);
	entry.is_send = is_p2p && is_send;
	e->v[e->n++] = entry;
}

static void list(const struct cw_snapshot *snap, const struct slow_wait *w, struct entries *e)
{
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];
			struct entry entry = { .comm = c, .rank = member->rank };

			if (member->rank >= snap->n_ranks)
				continue;
			entry.node = snap->ranks[member->rank].node;
			entry.slot = w->member_first[w->comm_first[c] + m];
			for (uint32_t i = 0; i < member->n_window; i++, entry.slot++)
				add(e, entry, m, &member->window[i]);
		}
}

static bool is_of_pair(const struct entry *a, const struct entry *b)
{
	return a->comm == b->comm && a->from == b->from && a->to == b->to;
}

/* True if the windows no longer show which other members entered this meeting, and when. */
static bool is_half_known(const struct reach *reach, const struct cw_snapshot *snap,
			  const struct entry *e, size_t n)
{
	uint32_t most = e->from == CW_SNAP_NONE ? snap->comms[e->comm].nranks : 2;

	return n < most && e->at_ns < reach->of_comm[e->comm];
}

/*
 * Finds the time when the last member of each meeting entered. If we know only a part of a meeting,
 * we assume that the rank may have waited for the others all the time.
 */
static void find_last_to_come(const struct cw_snapshot *snap, const struct reach *reach,
			      struct entries *e)
{
	size_t end, pair = 0;

	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_meeting);
	for (size_t i = 0; i < e->n; i = end) {
		const struct entry *last = &e->v[i];
		bool is_known;

		pair += i && !is_of_pair(&e->v[i - 1], &e->v[i]);
		for (end = i; end < e->n && by_meeting(&e->v[i], &e->v[end]) == 0; end++)
			if (e->v[end].at_ns > last->at_ns)
				last = &e->v[end];
		is_known = !is_half_known(reach, snap, last, end - i);
		for (size_t k = i; k < end; k++) {
			bool is_near = e->v[k].node == last->node;

			e->v[k].free_ns =
				is_known ? last->at_ns - (is_near ? 0 : SLOW_CLOCK_NS) : INT64_MIN;
			e->v[k].free_at_most_ns = is_known ? last->at_ns : INT64_MAX;
			e->v[k].pair = pair;
		}
	}
}

/* The calls that a rank has entered and may still have to wait in, the oldest first. */
struct ahead {
	const struct entry *v[AHEAD_MAX];
	uint32_t n;
	/*
	 * Per pair: the number of sends that may be in flight without blocking the sender. We take
	 * the highest number with which the sender went on: NCCL's buffers have room for that many.
	 */
	uint32_t *room;
};

/* Counts the sends of the same pair in flight, from entry `at` to the newest. */
static uint32_t sends_since(const struct ahead *a, uint32_t at)
{
	uint32_t n = 0;

	for (uint32_t i = at; i < a->n; i++)
		n += a->v[i]->is_send && a->v[i]->pair == a->v[at]->pair;
	return n;
}

static bool may_hold_up(const struct ahead *a, uint32_t at)
{
	return !a->v[at]->is_send || sends_since(a, at) > a->room[a->v[at]->pair];
}

/*
 * Removes the meetings that were complete when the rank entered its next call, at next_ns. The rank
 * cannot have waited for meetings that became complete later. Returns the time until which the rank
 * waited.
 */
static int64_t wait_until(struct ahead *a, int64_t next_ns)
{
	int64_t until = INT64_MIN;
	uint32_t left = 0;

	for (uint32_t i = 0; i < a->n; i++)
		if (a->v[i]->free_ns <= next_ns && may_hold_up(a, i) &&
		    a->v[i]->free_at_most_ns > until)
			until = a->v[i]->free_at_most_ns;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->v[i]->free_ns > next_ns)
			a->v[left++] = a->v[i];
	a->n = left;
	return until < next_ns ? until : next_ns;
}

static void note_room(struct ahead *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		uint32_t *room = &a->room[a->v[i]->pair];
		uint32_t n = a->v[i]->is_send ? sends_since(a, i) : 0;

		*room = n > *room ? n : *room;
	}
}

/*
 * Goes through the calls of one rank in order of time, and stores how long it had waited before
 * each. If before_ns is NULL, we only note how far sends may run ahead of their receives. If a
 * window of the rank does not reach back to a call, the rank may have waited until its next call.
 */
static void go_through(const struct entries *e, const struct reach *reach, struct ahead *a,
		       int64_t *before_ns)
{
	int64_t sum = 0, until;

	a->n = 0;
	for (size_t i = 0; i < e->n; i++) {
		if (before_ns)
			before_ns[e->v[i].slot] = sum;
		if (i + 1 == e->n || e->v[i + 1].rank != e->v[i].rank) {
			a->n = 0;
			sum = 0;
			continue;
		}
		if (a->n < AHEAD_MAX)
			a->v[a->n++] = &e->v[i];
		until = wait_until(a, e->v[i + 1].at_ns);
		if (e->v[i].at_ns < reach->of_rank[e->v[i].rank])
			until = e->v[i + 1].at_ns;
		if (until > e->v[i].at_ns)
			sum += until - e->v[i].at_ns;
		if (!before_ns)
			note_room(a);
	}
}

static int add_up(struct entries *e, const struct reach *reach, int64_t *before_ns)
{
	struct ahead a = { .room = calloc(e->n + 1, sizeof(*a.room)) };

	if (!a.room)
		return -ENOMEM;
	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_rank);
	go_through(e, reach, &a, NULL);
	go_through(e, reach, &a, before_ns);
	free(a.room);
	return 0;
}

/* Numbers all ops of all windows. Returns the number of ops. */
static size_t number_ops(const struct cw_snapshot *snap, struct slow_wait *w)
{
	size_t members = 0, ops = 0;

	for (uint32_t c = 0; c < snap->n_comms; c++) {
		w->comm_first[c] = members;
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			w->member_first[members++] = ops;
			ops += snap->comms[c].members[m].n_window;
		}
	}
	return ops;
}

int slow_wait_init(const struct cw_snapshot *snap, struct slow_wait *ret)
{
	struct entries e = { 0 };
	struct reach reach = { 0 };
	size_t members = 0, ops = 0;
	int r = -ENOMEM;

	*ret = (struct slow_wait){ 0 };
	for (uint32_t c = 0; c < snap->n_comms; c++)
		members += snap->comms[c].nranks;
	ret->comm_first = calloc(snap->n_comms + 1u, sizeof(*ret->comm_first));
	ret->member_first = calloc(members + 1, sizeof(*ret->member_first));
	if (ret->comm_first && ret->member_first) {
		ops = number_ops(snap, ret);
		ret->before_ns = calloc(ops + 1, sizeof(*ret->before_ns));
		e.v = calloc(ops + 1, sizeof(*e.v));
	}
	if (ret->before_ns && e.v)
		r = reach_init(snap, &reach);
	if (r == 0) {
		list(snap, ret, &e);
		find_last_to_come(snap, &reach, &e);
		r = add_up(&e, &reach, ret->before_ns);
	}
	reach_fini(&reach);
	free(e.v);
	return r;
}

void slow_wait_fini(struct slow_wait *w)
{
	free(w->before_ns);
	free(w->member_first);
	free(w->comm_first);
	*w = (struct slow_wait){ 0 };
}

int64_t slow_wait_before_ns(const struct slow_wait *w, uint32_t comm, uint32_t member, uint32_t op)
{
	return w->before_ns[w->member_first[w->comm_first[comm] + member] + op];
}
