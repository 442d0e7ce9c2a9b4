/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each comm we look at the newest collectives of its windows. In each collective the median
 * arrival is the usual one. The delay of a member is the time between the median and its own
 * arrival. It is never more than the time that the member took by itself: time spent waiting for
 * others (slow_wait.h) does not count. A delay counts only if most other members entered no
 * further call before the member arrived. A member is slow if it is late in nearly all collectives
 * in which any member is late, and if that costs enough of the time. Half of the members or more
 * are never slow.
 *
 * We join comms that have the same members. Few members wait for a call such as a reduce, so a late
 * member holds up most others only in the next call, or never. If several members are late by
 * turns, each comm may show only one of them. So a member that was late on another comm since the
 * previous collective counts as late in this one.
 */
#include "analysis/slow/slow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/align/position.h"
#include "analysis/slow/slow_wait.h"
#include "model/verdict_types.h"

#define LATE_NS (INT64_C(10) * 1000000)
/* Used instead of LATE_NS if no rank with the same clock is on time. */
#define LATE_BY_CLOCK_NS SLOW_CLOCK_NS
/* We need at least OPS_MIN collectives and look at no more than OPS_MAX. */
#define OPS_MIN 8u
#define OPS_MAX 64u
/*
 * Of the collectives in which some member is late, a slow member is late in at least
 * this percentage.
 */
#define ALWAYS_PERCENT 80u
/* A delay that costs a smaller share of the time is not worth reporting. */
#define COST_PERCENT 10u
/* With two members, one is late and one early, and we cannot say which is usual. */
#define MEMBERS_MIN 3u

struct arrival {
	int64_t at_ns;
	int64_t next_ns;   /* when it entered its next call; INT64_MAX = not yet */
	int64_t waited_ns; /* how long it had waited for others until then */
	bool has_come;
	bool is_held; /* blocked in the call itself because the device's queue was full */
};

struct lateness {
	uint32_t n_late;
	uint32_t n_delays;          /* collectives with a delay, here or on another comm */
	bool is_late, was_late;     /* in the current collective, in the previous one */
	bool is_late_on_other_comm; /* between the previous collective and the current one */
	int64_t sum_ns;
	/*
	 * Excess over the median of the time that the member took by itself, in ns. It excludes
	 * waits for others and counts from the last time that the members waited for each other.
	 */
	int64_t own_ns;
};

/* A member came late to a collective. */
struct late_arrival {
	uint32_t comm, member;
	int64_t at_ns;
};

struct late_arrivals {
	struct late_arrival *v;
	size_t n, room;
};

struct race {
	const struct cw_snapshot *snap;
	const struct cw_snap_comm *c;
	const struct slow_wait *waits;
	uint32_t comm;
	struct arrival *arrivals; /* per member */
	struct arrival *before;   /* per member: its arrival at the previous collective */
	bool has_before;
	struct lateness *late; /* per member */
	int64_t *sorted;
	uint32_t n_ops, n_delayed_ops;
	int64_t first_ns, last_ns;
	struct late_arrivals *note;                 /* out: late arrivals on this comm; or NULL */
	const struct late_arrivals *other_arrivals; /* late arrivals on all comms; may be NULL */
};

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* The median of the n values in r->sorted. */
static int64_t median(struct race *r, uint32_t n)
{
	qsort(r->sorted, n, sizeof(*r->sorted), compare_ns);
	return r->sorted[n / 2];
}

static struct arrival arrival_of(const struct race *r, uint32_t member, uint64_t seq)
{
	const struct cw_snap_member *m = &r->c->members[member];
	struct arrival a = { .next_ns = INT64_MAX };

	for (uint32_t i = m->n_window; i-- > 0;) {
		const struct cw_op *op = &m->window[i];

		if (!position_is_step(op) || op->coll_seq != seq)
			continue;
		a.has_come = true;
		a.at_ns = slow_within_ns(op->enter_ns, SLOW_TIME_MAX_NS);
		a.is_held = (op->flags & CW_OPF_RETURNED) && op->return_ns >= a.at_ns + LATE_NS;
		a.waited_ns = slow_wait_before_ns(r->waits, r->comm, member, i);
		for (uint32_t k = i + 1; k < m->n_window; k++)
			/* All calls of one group are entered together. */
			if (!op->group_id || m->window[k].group_id != op->group_id) {
				a.next_ns = slow_within_ns(m->window[k].enter_ns, SLOW_TIME_MAX_NS);
				break;
			}
		break;
	}
	return a;
}

/*
 * True if most other members entered no further call before this member arrived and have gone
 * on since.
 */
static bool held_up(struct race *r, uint32_t late)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < r->c->nranks; m++)
		if (m != late)
			r->sorted[n++] = r->arrivals[m].next_ns;
	return median(r, n) >= r->arrivals[late].at_ns && r->sorted[n / 2] != INT64_MAX;
}

static int64_t own_ns(const struct race *r, uint32_t m)
{
	const struct arrival *a = &r->arrivals[m], *b = &r->before[m];

	return slow_within_ns((a->at_ns - b->at_ns) - (a->waited_ns - b->waited_ns),
			      SLOW_SPAN_MAX_NS);
}

static void add_own(struct race *r)
{
	int64_t usual;

	for (uint32_t m = 0; m < r->c->nranks; m++)
		r->sorted[m] = own_ns(r, m);
	usual = median(r, r->c->nranks);
	for (uint32_t m = 0; m < r->c->nranks; m++)
		r->late[m].own_ns += own_ns(r, m) - usual;
}

/*
 * If most members entered no further call until all had arrived, they start again together, and
 * own_ns starts from 0.
 */
static void forget_own(struct race *r)
{
	int64_t last = INT64_MIN;

	for (uint32_t m = 0; m < r->c->nranks; m++) {
		r->sorted[m] = r->arrivals[m].next_ns;
		if (r->arrivals[m].at_ns > last)
			last = r->arrivals[m].at_ns;
	}
	if (r->has_before && median(r, r->c->nranks) < last)
		return;
	for (uint32_t m = 0; m < r->c->nranks; m++)
		r->late[m].own_ns = 0;
}

/*
 * A rank's delay is at most the time that it took by itself, without its waits for others. For the
 * first collective this time is unknown, so the whole delay counts.
 */
static int64_t late_by(const struct race *r, uint32_t m, int64_t usual)
{
	int64_t by = r->arrivals[m].at_ns - usual, own = r->late[m].own_ns;

	return slow_within_ns(r->has_before && own < by ? own : by, SLOW_SPAN_MAX_NS);
}

static bool has_punctual_neighbour(const struct race *r, uint32_t late, int64_t usual)
{
	uint32_t node = r->snap->ranks[r->c->members[late].rank].node;

	for (uint32_t m = 0; m < r->c->nranks; m++)
		if (r->snap->ranks[r->c->members[m].rank].node == node &&
		    r->arrivals[m].at_ns - usual < LATE_NS)
			return true;
	return false;
}

/*
 * A member is late only if at least half of the delay is its own. If it waited for a message, we
 * know when the sender's host sent it, but not when the sender's device did.
 */
static bool is_late(const struct race *r, uint32_t m, int64_t usual)
{
	int64_t by = late_by(r, m, usual), in_all = r->arrivals[m].at_ns - usual;

	if (2 * by < in_all)
		return false;
	/* The waiting time is only as exact as the clocks of the ranks that it waited for. */
	return by >= LATE_BY_CLOCK_NS || (by >= LATE_NS && has_punctual_neighbour(r, m, usual));
}

static bool meet(struct race *r, uint64_t seq)
{
	for (uint32_t m = 0; m < r->c->nranks; m++) {
		r->arrivals[m] = arrival_of(r, m, seq);
		if (!r->arrivals[m].has_come)
			return false;
	}
	return true;
}

/*
 * True if most hosts have filled their device queues. They enter a call when there is room in the
 * queue, so the time of entry does not show which member is late.
 */
static bool are_held(const struct race *r)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < r->c->nranks; m++)
		n += r->arrivals[m].is_held;
	return 2 * n > r->c->nranks;
}

static bool has_same_members(const struct cw_snap_comm *a, const struct cw_snap_comm *b)
{
	if (a->nranks != b->nranks)
		return false;
	for (uint32_t m = 0; m < a->nranks; m++)
		if (a->members[m].rank != b->members[m].rank)
			return false;
	return true;
}

/*
 * Notes members that were late on another comm since their previous call on this one, by their own
 * clocks. A member that was already late at that previous call is skipped, because one delay
 * counts once.
 */
static void note_other_arrivals(struct race *r)
{
	for (size_t i = 0; r->has_before && i < r->other_arrivals->n; i++) {
		const struct late_arrival *l = &r->other_arrivals->v[i];

		if (!r->late[l->member].was_late && l->at_ns > r->before[l->member].at_ns &&
		    l->at_ns <= r->arrivals[l->member].at_ns)
			r->late[l->member].is_late_on_other_comm = true;
	}
}

static int note_late(struct late_arrivals *all, struct late_arrival late)
{
	struct late_arrival *v;

	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 64;

		v = realloc(all->v, room * sizeof(*v));
		if (!v)
			return -ENOMEM;
		all->v = v;
		all->room = room;
	}
	all->v[all->n++] = late;
	return 0;
}

/* Counts the delays of one collective. */
static void count_delays(struct race *r)
{
	bool is_delayed = false;

	for (uint32_t m = 0; m < r->c->nranks; m++) {
		struct lateness *l = &r->late[m];

		l->n_delays += l->is_late || l->is_late_on_other_comm;
		is_delayed = is_delayed || l->is_late || l->is_late_on_other_comm;
		l->was_late = l->is_late;
		l->is_late = l->is_late_on_other_comm = false;
	}
	r->n_delayed_ops += is_delayed;
}

static int compare_arrivals(struct race *r)
{
	int64_t usual;
	int err = 0;

	for (uint32_t m = 0; m < r->c->nranks; m++)
		r->sorted[m] = r->arrivals[m].at_ns;
	usual = median(r, r->c->nranks);
	if (!r->n_ops++ || usual < r->first_ns)
		r->first_ns = usual;
	if (usual > r->last_ns)
		r->last_ns = usual;
	for (uint32_t m = 0; m < r->c->nranks && !are_held(r); m++) {
		if (!is_late(r, m, usual) || !held_up(r, m))
			continue;
		r->late[m].n_late++;
		r->late[m].sum_ns += late_by(r, m, usual);
		r->late[m].is_late = true;
		if (r->note && err == 0)
			err = note_late(r->note,
					(struct late_arrival){ r->comm, m, r->arrivals[m].at_ns });
	}
	if (r->other_arrivals)
		note_other_arrivals(r);
	count_delays(r);
	return err;
}

static int run_one(struct race *r, uint64_t seq)
{
	struct arrival *swap = r->before;
	int err;

	if (!meet(r, seq)) {
		r->has_before = false;
		return 0;
	}
	if (r->has_before)
		add_own(r);
	err = compare_arrivals(r);
	forget_own(r);
	r->has_before = true;
	r->before = r->arrivals;
	r->arrivals = swap;
	return err;
}

static bool can_run(const struct cw_snap_comm *c)
{
	if (c->nranks < MEMBERS_MIN)
		return false;
	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank == CW_SNAP_NONE || !c->members[m].window)
			return false;
	return true;
}

static bool is_often_late(const struct race *r, uint32_t m)
{
	return r->late[m].n_delays * 100 >= r->n_delayed_ops * ALWAYS_PERCENT;
}

/*
 * Returns LIKELY if another rank with the same clock is not often late, so that a wrong clock
 * cannot explain the delay. Otherwise returns POSSIBLE.
 */
static uint32_t confidence_of(const struct race *r, uint32_t late)
{
	uint32_t node = r->snap->ranks[r->c->members[late].rank].node;

	for (uint32_t m = 0; m < r->c->nranks; m++)
		if (r->snap->ranks[r->c->members[m].rank].node == node && !is_often_late(r, m))
			return CW_CONFIDENCE_LIKELY;
	return CW_CONFIDENCE_POSSIBLE;
}

static bool costs_more(const struct cw_snapshot *snap, const struct cw_slow *a,
		       const struct cw_slow *b)
{
	if (a->percent != b->percent)
		return a->percent > b->percent;
	return snap->ranks[a->rank].rank < snap->ranks[b->rank].rank;
}

/* Keeps one entry per rank: the comm in which the rank costs most. */
static void keep(const struct cw_snapshot *snap, struct cw_slow_list *list, struct cw_slow slow)
{
	uint32_t at;

	for (uint32_t i = 0; i < list->n; i++) {
		if (list->v[i].rank != slow.rank)
			continue;
		if (list->v[i].percent >= slow.percent)
			return;
		memmove(&list->v[i], &list->v[i + 1], (--list->n - i) * sizeof(slow));
		break;
	}
	for (at = list->n; at && costs_more(snap, &slow, &list->v[at - 1]);)
		at--;
	if (at == CW_SLOW_MAX)
		return;
	if (list->n == CW_SLOW_MAX)
		list->n--;
	memmove(&list->v[at + 1], &list->v[at], (list->n++ - at) * sizeof(slow));
	list->v[at] = slow;
}

static void judge(const struct race *r, struct cw_slow_list *list)
{
	int64_t span_ns = r->last_ns - r->first_ns;
	uint32_t n_slow = 0;

	if (r->n_delayed_ops < OPS_MIN || span_ns <= 0)
		return;
	for (uint32_t m = 0; m < r->c->nranks; m++)
		n_slow += is_often_late(r, m);
	if (2 * n_slow >= r->c->nranks)
		return;
	for (uint32_t m = 0; m < r->c->nranks; m++) {
		const struct lateness *l = &r->late[m];
		double share = (double)l->sum_ns * 100 / (double)span_ns;
		uint32_t percent = share > 100 ? 100 : (uint32_t)share;

		if (!l->n_late || !is_often_late(r, m) || percent < COST_PERCENT)
			continue;
		keep(r->snap, list,
		     (struct cw_slow){ .rank = r->c->members[m].rank,
				       .comm = r->comm,
				       .confidence = confidence_of(r, m),
				       .n_ops = r->n_ops,
				       .n_late = l->n_late,
				       .late_ns = l->sum_ns / l->n_late,
				       .percent = percent });
	}
}

/* Walks the newest collectives in the first member's window. */
static int run(struct race *r)
{
	const struct cw_snap_member *first = &r->c->members[0];
	uint32_t n = r->c->nranks, left = OPS_MAX, at = first->n_window;
	int err = 0;

	r->arrivals = calloc(n, sizeof(*r->arrivals));
	r->before = calloc(n, sizeof(*r->before));
	r->late = calloc(n, sizeof(*r->late));
	r->sorted = calloc(n, sizeof(*r->sorted));
	if (!r->arrivals || !r->before || !r->late || !r->sorted)
		return -ENOMEM;
	while (at && left)
		left -= position_is_step(&first->window[--at]);
	for (; at < first->n_window && err == 0; at++)
		if (position_is_step(&first->window[at]))
			err = run_one(r, first->window[at].coll_seq);
	return err;
}

static void end_race(struct race *r)
{
	free(r->arrivals);
	free(r->before);
	free(r->late);
	free(r->sorted);
}

/* Lists the late arrivals on other comms that have the same members. */
static int list_other_arrivals(const struct race *r, const struct late_arrivals *all,
			       struct late_arrivals *ret)
{
	uint32_t seen = CW_SNAP_NONE;
	bool is_same = false;
	int err = 0;

	for (size_t i = 0; i < all->n && err == 0; i++) {
		if (all->v[i].comm != seen) {
			seen = all->v[i].comm;
			is_same = seen != r->comm && has_same_members(r->c, &r->snap->comms[seen]);
		}
		if (is_same)
			err = note_late(ret, all->v[i]);
	}
	return err;
}

static int note_comm(const struct cw_snapshot *snap, uint32_t comm, const struct slow_wait *waits,
		     struct late_arrivals *all)
{
	struct race r = {
		.snap = snap, .c = &snap->comms[comm], .waits = waits, .comm = comm, .note = all
	};
	int err = run(&r);

	end_race(&r);
	return err;
}

static int judge_comm(const struct cw_snapshot *snap, uint32_t comm, const struct slow_wait *waits,
		      const struct late_arrivals *all, struct cw_slow_list *list)
{
	struct late_arrivals other_arrivals = { 0 };
	struct race r = { .snap = snap,
			  .c = &snap->comms[comm],
			  .waits = waits,
			  .comm = comm,
			  .other_arrivals = &other_arrivals };
	int err = list_other_arrivals(&r, all, &other_arrivals);

	if (err == 0)
		err = run(&r);
	if (err == 0)
		judge(&r, list);
	end_race(&r);
	free(other_arrivals.v);
	return err;
}

int cw_slow_find(const struct cw_snapshot *snap, struct cw_slow_list *ret)
{
	struct late_arrivals all = { 0 };
	struct slow_wait waits;
	int err = slow_wait_init(snap, &waits);

	*ret = (struct cw_slow_list){ 0 };
	for (uint32_t c = 0; err == 0 && c < snap->n_comms; c++)
		if (can_run(&snap->comms[c]))
			err = note_comm(snap, c, &waits, &all);
	for (size_t i = 0; err == 0 && i < all.n; i++)
		if (!i || all.v[i].comm != all.v[i - 1].comm)
			err = judge_comm(snap, all.v[i].comm, &waits, &all, ret);
	slow_wait_fini(&waits);
	free(all.v);
	return err;
}
