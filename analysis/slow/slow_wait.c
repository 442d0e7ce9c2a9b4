/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All entries of all windows, sorted twice: by meeting, to know when the last of each had come;
 * then by rank and time, to add up how long each host cannot have gone on before that. A host may
 * run ahead: meetings that were complete only after its next call it did not wait for.
 */
#include "analysis/slow/slow_wait.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analysis/align/position.h"

/* Calls that a host has made ahead of others and may yet have to wait in. */
#define AHEAD_MAX 256u

/* One entry into a call. Those of one meeting have its key in common. */
struct entry {
	uint64_t seq;
	uint32_t comm, from, to; /* from, to: comm ranks of a send; CW_SNAP_NONE of a collective */
	uint32_t rank;
	size_t slot;
	uint32_t node;
	int64_t at_ns;
	int64_t free_ns, free_at_most_ns; /* when the last of the meeting has come */
};

struct entries {
	struct entry *v;
	size_t n;
};

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

static void find_last_to_come(struct entries *e)
{
	size_t end;

	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_meeting);
	for (size_t i = 0; i < e->n; i = end) {
		const struct entry *last = &e->v[i];

		for (end = i; end < e->n && by_meeting(&e->v[i], &e->v[end]) == 0; end++)
			if (e->v[end].at_ns > last->at_ns)
				last = &e->v[end];
		for (size_t k = i; k < end; k++) {
			bool is_near = e->v[k].node == last->node;

			e->v[k].free_ns = last->at_ns - (is_near ? 0 : SLOW_CLOCK_NS);
			e->v[k].free_at_most_ns = last->at_ns;
		}
	}
}

/*
 * Takes the meetings out of `ahead` that were complete when the rank entered its next call; of
 * those that became so later it cannot have waited for any. Returns until when it waited.
 */
static int64_t wait_until(const struct entry **ahead, uint32_t *n, int64_t next_ns)
{
	int64_t until = INT64_MIN;
	uint32_t left = 0;

	for (uint32_t i = 0; i < *n; i++) {
		if (ahead[i]->free_ns > next_ns)
			ahead[left++] = ahead[i];
		else if (ahead[i]->free_at_most_ns > until)
			until = ahead[i]->free_at_most_ns;
	}
	*n = left;
	return until < next_ns ? until : next_ns;
}

static void add_up(struct entries *e, int64_t *before_ns)
{
	const struct entry *ahead[AHEAD_MAX];
	int64_t sum = 0, until;
	uint32_t n = 0;

	if (e->n)
		qsort(e->v, e->n, sizeof(*e->v), by_rank);
	for (size_t i = 0; i < e->n; i++) {
		before_ns[e->v[i].slot] = sum;
		if (i + 1 == e->n || e->v[i + 1].rank != e->v[i].rank) {
			n = 0;
			sum = 0;
			continue;
		}
		if (n < AHEAD_MAX)
			ahead[n++] = &e->v[i];
		until = wait_until(ahead, &n, e->v[i + 1].at_ns);
		if (until > e->v[i].at_ns)
			sum += until - e->v[i].at_ns;
	}
}

/* Numbers all ops of all windows; returns how many there are. */
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
	size_t members = 0, ops;

	*ret = (struct slow_wait){ 0 };
	for (uint32_t c = 0; c < snap->n_comms; c++)
		members += snap->comms[c].nranks;
	ret->comm_first = calloc(snap->n_comms + 1u, sizeof(*ret->comm_first));
	ret->member_first = calloc(members + 1, sizeof(*ret->member_first));
	if (!ret->comm_first || !ret->member_first)
		return -ENOMEM;
	ops = number_ops(snap, ret);
	ret->before_ns = calloc(ops + 1, sizeof(*ret->before_ns));
	e.v = calloc(ops + 1, sizeof(*e.v));
	if (!ret->before_ns || !e.v) {
		free(e.v);
		return -ENOMEM;
	}
	list(snap, ret, &e);
	find_last_to_come(&e);
	add_up(&e, ret->before_ns);
	free(e.v);
	return 0;
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
