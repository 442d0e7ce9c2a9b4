/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each comm we examine the newest collectives in its windows. The usual arrival in a collective
 * is the median arrival. The delay of a member is the time between the median and its own arrival.
 * The delay is never more than the time that the member took by itself, without its waits for
 * others (slow_wait.h). A delay counts only if most other members entered no further call before
 * the member arrived.
 *
 * A member is slow if it is late in nearly all collectives in which any member is late, and if the
 * delays cost enough of the time. Half of the members or more are never slow.
 *
 * We join comms that have the same members. In a call such as a reduce only few members wait. There
 * a late member blocks most others only in the next call, or never. If several members are late in
 * turn, each comm may show only one of them. So a member that was late on another comm since the
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
/* The limit that replaces LATE_NS if no rank with the same clock is on time. */
#define LATE_BY_CLOCK_NS SLOW_CLOCK_NS
/* We need at least OPS_MIN collectives of a comm, and examine at most OPS_MAX. */
#define OPS_MIN 8u
#define OPS_MAX 64u
/*
 * A slow member is late in at least this percentage of the collectives in which some member is
 * late.
 */
#define ALWAYS_PERCENT 80u
/* The minimum share of the time that the delays of a reported member cost. */
#define COST_PERCENT 10u
/*
 * The minimum number of members. With two members, one is late and one early, and we cannot say
 * which is usual.
 */
#define MEMBERS_MIN 3u

struct arrival {
	int64_t at_ns;
	int64_t next_ns;   /* when the member entered its next call; INT64_MAX = not yet */
	int64_t waited_ns; /* how long the member had waited for others before at_ns */
	bool has_come;
	bool is_held; /* blocked in the call itself because the device's queue was full */
};

struct lateness {
	uint32_t n_late;
	/* Number of collectives with a delay of the member, here or on another comm. */
	uint32_t n_delays;
	bool is_late, was_late;     /* late in the current collective; late in the previous one */
	bool is_late_on_other_comm; /* between the previous collective and the current one */
	int64_t sum_ns;
	/*
	 * The time in ns that the member took by itself, minus the median of this time over all
	 * members. Waits for others are excluded. We count from the last time at which the members
	 * waited for each other.
	 */
	int64_t own_ns;
};

/* An arrival of a member that came late to a collective. */
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
	struct arrival *arrivals; /* per member: its arrival at this collective */
	struct arrival *before;   /* per member: its arrival at the previous collective */
	bool has_before;
	struct lateness *late; /* per member: its delays so far */
	int64_t *sorted;
	uint32_t n_ops, n_delayed_ops;
	int64_t first_ns, last_ns;
	struct late_arrivals *note; /* output: late arrivals on this comm; NULL = not needed */
	const struct late_arrivals *other_arrivals; /* late arrivals on all comms; may be NULL */
};

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the median of the n values in r->sorted. Sorts them. */
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
			/* The rank enters all calls of one group together. */
			if (!op->group_id || m->window[k].group_id != op->group_id) {
				a.next_ns = slow_within_ns(m->window[k].enter_ns, SLOW_TIME_MAX_NS);
				break;
			}
		break;
	}
	return a;
}

/*
 * True if the late member blocked the others: most of them entered no further call before it
 * arrived, and have gone on since.
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
 * Sets own_ns to 0 if most members entered no further call before all had arrived. The members then
 * start again together.
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
 * Returns the delay of a member. The delay is at most the time that the member took by itself,
 * without its waits for others. For the first collective we do not know this time, so the whole
 * delay counts.
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
 * True if a member is late. At least half of the delay must be its own. If it waited for a message,
 * we know when the sender's host sent the message, but not when the sender's device did.
 */
static bool is_late(const struct race *r, uint32_t m, int64_t usual)
{
	int64_t by = late_by(r, m, usual), in_all = r->arrivals[m].at_ns - usual;

	if (2 * by < in_all)
		return false;
	/*
	 * The waiting time is only as exact as the clocks of the ranks that the member waited for.
	 */
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
 * True if most hosts have filled their device queues. Such a host enters a call when there is room
 * in the queue. The time of entry then does not show which member is late.
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
 * clocks. If a member was already late at that previous call, we skip it, because one delay counts
 * once.
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

/* Counts the members' delays in the current collective. */
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
 * Returns LIKELY if another rank with the same clock is mostly on time. A wrong clock then cannot
 * explain the delay. Otherwise returns POSSIBLE.
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

/* Stores one entry per rank, for the comm in which the rank costs most. */
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

/* Walks over the newest collectives in the first member's window. */
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

/*
 * Lists the late arrivals on the other comms that have the same members as this comm. Returns 0 or
 * -ENOMEM.
 */
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
