/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We check every comm for differing histories at every evaluation, so the check must be cheap. It
 * puts all points into a hash table by coll_seq. It keeps the lowest coll_seq at which two members
 * differ. Only if there is such a coll_seq do we sort the members. Members that share a point join
 * one group. The other groups differ from the largest group.
 */
#include "analysis/align/call_hashes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/align/align.h"
#include "model/signature.h"

struct call_hashes_slot {
	/* Epoch of the comm that filled the slot; another epoch = the slot is empty. */
	uint32_t epoch;
	uint32_t member; /* the first member that has this point */
	uint64_t seq, hash;
};

/*
 * The maximum number of points of a member: its newest point, its checkpoints, and the points after
 * its last calls.
 */
#define MAX_POINTS (CW_SNAP_CHECKPOINTS + CW_SNAP_MAX_LAST_HASHES + 1)

static uint32_t list_points(const struct cw_snap_member *m, struct cw_checkpoint points[MAX_POINTS])
{
	uint32_t n = 0;

	if (m->rank == CW_SNAP_NONE)
		return 0;
	if ((m->known & CW_KNOWN_HASH) && m->hash_seq)
		points[n++] = (struct cw_checkpoint){ m->hash_seq, m->hash };
	for (uint32_t i = 0; i < CW_SNAP_CHECKPOINTS; i++)
		if ((m->known & CW_KNOWN_ENTERED) && m->checkpoints[i].coll_seq)
			points[n++] = m->checkpoints[i];
	for (uint32_t i = 0; i < m->n_last_hashes; i++)
		if ((m->known & CW_KNOWN_ENTERED) && m->last_hashes[i].coll_seq)
			points[n++] = m->last_hashes[i];
	return n;
}

/* ---- do the histories differ? ---- */

static int grow(struct call_hashes_scratch *s)
{
	uint32_t n = s->n_slots ? s->n_slots * 2 : 128;
	struct call_hashes_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++) {
		uint32_t to = (uint32_t)cw_hash_mix64(s->slots[i].seq) & (n - 1);

		if (s->slots[i].epoch != s->epoch)
			continue;
		while (slots[to].epoch)
			to = (to + 1) & (n - 1);
		slots[to] = s->slots[i];
	}
	free(s->slots);
	s->slots = slots;
	s->n_slots = n;
	return 0;
}

/* Two members at the lowest coll_seq at which two points differ. seq 0 = no two members differ. */
struct parting {
	uint64_t seq;
	uint32_t one, other;
};

static int note_point(struct call_hashes_scratch *s, const struct cw_checkpoint *point,
		      uint32_t member, struct parting *parting)
{
	uint32_t i;

	if (s->used >= s->n_slots / 2 && grow(s) < 0)
		return -ENOMEM;
	i = (uint32_t)cw_hash_mix64(point->coll_seq) & (s->n_slots - 1);
	for (; s->slots[i].epoch == s->epoch; i = (i + 1) & (s->n_slots - 1)) {
		if (s->slots[i].seq != point->coll_seq)
			continue;
		if (s->slots[i].hash != point->hash &&
		    (!parting->seq || point->coll_seq < parting->seq))
			*parting = (struct parting){ point->coll_seq, s->slots[i].member, member };
		return 0;
	}
	s->slots[i] = (struct call_hashes_slot){
		.epoch = s->epoch, .member = member, .seq = point->coll_seq, .hash = point->hash
	};
	s->used++;
	return 0;
}

/*
 * Returns the coll_seq of the last point at which the two members agreed. Other members may have
 * agreed at later points, but that says nothing about these two.
 */
static uint64_t last_agreed(const struct cw_snap_comm *c, const struct parting *parting)
{
	struct cw_checkpoint a[MAX_POINTS], b[MAX_POINTS];
	uint32_t n_a = list_points(&c->members[parting->one], a);
	uint32_t n_b = list_points(&c->members[parting->other], b);
	uint64_t best = 0;

	for (uint32_t i = 0; i < n_a; i++)
		for (uint32_t k = 0; k < n_b; k++)
			if (a[i].coll_seq == b[k].coll_seq && a[i].hash == b[k].hash &&
			    a[i].coll_seq < parting->seq && a[i].coll_seq > best)
				best = a[i].coll_seq;
	return best;
}

/*
 * True if both members have the same points. We then skip the second member. Neighbouring members
 * mostly have the same points.
 */
static bool shows_the_same(const struct cw_snap_member *a, const struct cw_snap_member *b)
{
	return a->rank != CW_SNAP_NONE && b->rank != CW_SNAP_NONE && a->known == b->known &&
	       a->hash_seq == b->hash_seq && a->hash == b->hash &&
	       !memcmp(a->checkpoints, b->checkpoints, sizeof(a->checkpoints)) &&
	       a->n_last_hashes == b->n_last_hashes &&
	       (!a->n_last_hashes || !memcmp(a->last_hashes, b->last_hashes,
					     a->n_last_hashes * sizeof(*a->last_hashes)));
}

int call_hashes_compare(const struct cw_snapshot *snap, uint32_t comm,
			struct call_hashes_scratch *scratch, struct call_hashes *ret)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	struct cw_checkpoint points[MAX_POINTS];
	struct parting parting = { 0 };

	*ret = (struct call_hashes){ 0 };
	scratch->used = 0;
	/*
	 * A new epoch empties the table without touching its slots. Once in 2^32 comms the epoch
	 * wraps, and old slots could look valid. So we wipe the table then.
	 */
	if (++scratch->epoch == 0) {
		if (scratch->slots)
			memset(scratch->slots, 0, scratch->n_slots * sizeof(*scratch->slots));
		scratch->epoch = 1;
	}
	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t n;

		if (m && shows_the_same(&c->members[m - 1], &c->members[m]))
			continue;
		n = list_points(&c->members[m], points);
		for (uint32_t i = 0; i < n; i++)
			if (note_point(scratch, &points[i], m, &parting) < 0)
				return -ENOMEM;
	}
	ret->differs = parting.seq != 0;
	/*
	 * An earlier evaluation may have found a difference, or an agreement, at points that this
	 * snapshot no longer has.
	 */
	if (ret->differs && c->differ_seq && c->differ_seq <= parting.seq) {
		ret->differ_seq = c->differ_seq;
		ret->agreed_seq = c->agreed_seq < c->differ_seq ? c->agreed_seq : 0;
	} else if (ret->differs) {
		ret->differ_seq = parting.seq;
		ret->agreed_seq = last_agreed(c, &parting);
	}
	return 0;
}

void call_hashes_scratch_fini(struct call_hashes_scratch *scratch)
{
	free(scratch->slots);
	*scratch = (struct call_hashes_scratch){ 0 };
}

/* ---- which member has which history? ---- */

struct point {
	uint64_t seq, hash;
	uint32_t member;
};

struct sorting {
	/* Points of all members from the first difference on, by seq and hash. */
	struct point *points;
	uint32_t n_points;
	bool *has_point; /* per member: it has at least one point */
	/* Per member: another member of its group, or the member itself. */
	uint32_t *group;
	uint32_t *n_in; /* indexed by the representative of a group: size of the group */
	/*
	 * Indexed by the representative of a group: true if the group differs from the largest
	 * group.
	 */
	bool *against;
	uint32_t largest; /* representative of the largest group */
};

static int compare_points(const void *x, const void *y)
{
	const struct point *a = x, *b = y;

	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->member < b->member ? -1 : a->member > b->member;
}

static uint32_t find(uint32_t *group, uint32_t m)
{
	while (group[m] != m) {
		group[m] = group[group[m]];
		m = group[m];
	}
	return m;
}

static int collect(struct sorting *s, const struct cw_snap_comm *c, uint64_t from,
		   struct cw_arena *a)
{
	struct cw_checkpoint known[MAX_POINTS];

	s->points = cw_arena_new_array(a, struct point, (size_t)c->nranks * MAX_POINTS);
	s->has_point = cw_arena_new_array(a, bool, c->nranks);
	s->group = cw_arena_new_array(a, uint32_t, c->nranks);
	s->n_in = cw_arena_new_array(a, uint32_t, c->nranks);
	s->against = cw_arena_new_array(a, bool, c->nranks);
	if (!s->points || !s->has_point || !s->group || !s->n_in || !s->against)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t n = list_points(&c->members[m], known);

		s->group[m] = m;
		for (uint32_t i = 0; i < n; i++) {
			if (known[i].coll_seq < from)
				continue;
			s->has_point[m] = true;
			s->points[s->n_points++] = (struct point){ .seq = known[i].coll_seq,
								   .hash = known[i].hash,
								   .member = m };
		}
	}
	qsort(s->points, s->n_points, sizeof(*s->points), compare_points);
	return 0;
}

/*
 * Joins members that share a point into one group, because they have the same history. The lower
 * member represents the joined group, so the result does not depend on the order of joining.
 */
static void join_equals(struct sorting *s)
{
	for (uint32_t i = 1; i < s->n_points; i++) {
		const struct point *p = &s->points[i - 1], *q = &s->points[i];
		uint32_t x, y;

		if (p->seq != q->seq || p->hash != q->hash)
			continue;
		x = find(s->group, p->member);
		y = find(s->group, q->member);
		if (x < y)
			s->group[y] = x;
		else
			s->group[x] = y;
	}
}

/* Marks the groups whose hash differs from the hash of the largest group at the same coll_seq. */
static uint32_t mark_others(struct sorting *s)
{
	uint32_t n = 0, end;

	for (uint32_t i = 0; i < s->n_points; i = end) {
		bool has_largest = false;

		for (end = i; end < s->n_points && s->points[end].seq == s->points[i].seq; end++)
			has_largest |= find(s->group, s->points[end].member) == s->largest;
		for (uint32_t k = i; has_largest && k < end; k++) {
			uint32_t g = find(s->group, s->points[k].member);

			if (g != s->largest && !s->against[g]) {
				s->against[g] = true;
				n++;
			}
		}
	}
	return n;
}

int call_hashes_sides(const struct cw_snapshot *snap, uint32_t comm, const struct call_hashes *h,
		      struct cw_arena *a, struct cw_side **ret, uint32_t *ret_n)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	struct sorting s = { 0 };
	uint32_t n_others, n = 0;
	struct cw_side *sides;

	*ret = NULL;
	*ret_n = 0;
	if (collect(&s, c, h->differ_seq, a) < 0)
		return -ENOMEM;
	join_equals(&s);
	for (uint32_t m = 0; m < c->nranks; m++) {
		uint32_t g = find(s.group, m);

		s.n_in[g] += s.has_point[m];
		if (s.n_in[g] > s.n_in[s.largest])
			s.largest = g;
	}
	n_others = mark_others(&s);
	if (!n_others)
		return 0;
	sides = cw_arena_new_array(a, struct cw_side, (size_t)n_others + 1);
	if (!sides)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->nranks; m++) {
		struct cw_side side;
		uint32_t at = n;

		if (m != s.largest && !s.against[m])
			continue;
		side = (struct cw_side){ .ranks = cw_arena_new_array(a, uint32_t, s.n_in[m]) };
		if (!side.ranks)
			return -ENOMEM;
		for (uint32_t k = 0; k < c->nranks; k++)
			if (find(s.group, k) == m)
				side.ranks[side.n_ranks++] = c->members[k].rank;
		align_sort_ranks(snap, side.ranks, side.n_ranks);
		for (; at && align_side_before(snap, &side, &sides[at - 1]); at--)
			sides[at] = sides[at - 1];
		sides[at] = side;
		n++;
	}
	*ret = sides;
	*ret_n = n;
	return 0;
}
