/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We pass twice over the known ops of a comm. The first pass puts every (coll_seq, signature) into
 * a hash table keyed by coll_seq. It finds the lowest coll_seq at which two signatures differ. The
 * second pass sorts the members into sides at that coll_seq: the members of one side made the same
 * call.
 */
#include "analysis/align/align.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/align/call_step.h"
#include "analysis/align/skipped_call.h"
#include "model/signature.h"

/*
 * A comm has at most this many sides. More sides explain nothing, and members of further sides are
 * on no side.
 */
#define MAX_SIDES 64

struct align_slot {
	/* Epoch of the comm that filled the slot; another epoch = the slot is empty. */
	uint32_t epoch;
	struct call_step step;
};

/* ---- first pass: the lowest coll_seq at which calls differ ---- */

struct dispute {
	struct align_scratch *scratch;
	uint64_t seq; /* the lowest coll_seq with a proven difference; 0 = none */
	/* The lowest coll_seq with a difference that grouping alone may explain; 0 = none. */
	uint64_t grouped_seq;
	/* The lowest coll_seq with the same call in groups of different extent; 0 = none. */
	uint64_t extent_seq;
};

static int scratch_grow(struct align_scratch *s)
{
	uint32_t n = s->n_slots ? s->n_slots * 2 : 256;
	struct align_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_slots; i++) {
		uint32_t to;

		if (s->slots[i].epoch != s->epoch)
			continue;
		to = (uint32_t)cw_hash_mix64(s->slots[i].step.seq) & (n - 1);
		while (slots[to].epoch)
			to = (to + 1) & (n - 1);
		slots[to] = s->slots[i];
	}
	free(s->slots);
	s->slots = slots;
	s->n_slots = n;
	return 0;
}

static uint64_t lower_seq(uint64_t a, uint64_t b)
{
	return !a || b < a ? b : a;
}

static int note_step(void *userdata, uint32_t member, const struct call_step *step)
{
	struct dispute *d = userdata;
	struct align_scratch *s = d->scratch;
	uint32_t i;

	(void)member;
	if (s->used >= s->n_slots / 2 && scratch_grow(s) < 0)
		return -ENOMEM;
	i = (uint32_t)cw_hash_mix64(step->seq) & (s->n_slots - 1);
	while (s->slots[i].epoch == s->epoch) {
		const struct call_step *known = &s->slots[i].step;

		if (known->seq == step->seq) {
			if (known->signature == step->signature) { /* nearly all ops agree */
				if (known->first_seq != step->first_seq ||
				    known->last_seq != step->last_seq)
					d->extent_seq = lower_seq(d->extent_seq, step->seq);
				return 0;
			}
			switch (call_step_compare(known, step)) {
			case CALL_STEP_AGREES:
				break;
			case CALL_STEP_DIFFERS:
				d->seq = lower_seq(d->seq, step->seq);
				break;
			case CALL_STEP_GROUPED_OTHERWISE:
				d->grouped_seq = lower_seq(d->grouped_seq, step->seq);
				break;
			}
			return 0;
		}
		i = (i + 1) & (s->n_slots - 1);
	}
	s->slots[i] = (struct align_slot){ .epoch = s->epoch, .step = *step };
	s->used++;
	return 0;
}

static int find_dispute(const struct cw_snap_comm *c, struct dispute *d)
{
	d->scratch->used = 0;
	/*
	 * A new epoch empties the table without touching its slots. Once in 2^32 comms the epoch
	 * wraps, and old slots could look valid. So we wipe the table then.
	 */
	if (++d->scratch->epoch == 0) {
		if (d->scratch->slots)
			memset(d->scratch->slots, 0,
			       d->scratch->n_slots * sizeof(*d->scratch->slots));
		d->scratch->epoch = 1;
	}
	for (uint32_t m = 0; m < c->nranks; m++) {
		int r = 0;

		if (c->members[m].rank != CW_SNAP_NONE)
			r = call_step_visit_all(&c->members[m], m, note_step, d);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- second pass: sort the members by their call at that coll_seq ---- */

struct sorting {
	uint64_t seq;
	struct call_step sides[MAX_SIDES];
	uint32_t first_member[MAX_SIDES];
	uint32_t n[MAX_SIDES];
	uint32_t n_sides;
	uint32_t *side_of; /* per member: index of its side; ALIGN_NO_SIDE = none */
};

static int sort_step(void *userdata, uint32_t member, const struct call_step *step)
{
	struct sorting *s = userdata;
	uint32_t i;

	if (step->seq != s->seq || s->side_of[member] != ALIGN_NO_SIDE)
		return 0;
	for (i = 0; i < s->n_sides; i++)
		if (call_step_compare(&s->sides[i], step) == CALL_STEP_AGREES)
			break;
	if (i == MAX_SIDES)
		return 0;
	if (i == s->n_sides) {
		s->sides[i] = *step;
		s->first_member[i] = member;
		s->n_sides++;
	}
	s->n[i]++;
	s->side_of[member] = i;
	return 0;
}

static int compare_labels(const void *a, const void *b, void *userdata)
{
	const struct cw_snapshot *snap = userdata;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int32_t rx = snap->ranks[x].rank, ry = snap->ranks[y].rank;

	if (rx != ry)
		return rx < ry ? -1 : 1;
	return x < y ? -1 : x > y;
}

void align_sort_ranks(const struct cw_snapshot *snap, uint32_t *ranks, uint32_t n)
{
	bool sorted = true;

	for (uint32_t i = 1; i < n && sorted; i++)
		sorted = compare_labels(&ranks[i - 1], &ranks[i], (void *)snap) <= 0;
	if (!sorted)
		qsort_r(ranks, n, sizeof(*ranks), compare_labels, (void *)snap);
}

static bool has_not_entered(const struct cw_snap_member *m, uint64_t seq)
{
	return m->rank != CW_SNAP_NONE && (m->known & CW_KNOWN_ENTERED) && m->coll_entered < seq;
}

/*
 * Fills one side with the members whose side_of is `which`, or with the members that have not
 * entered the call yet.
 */
static int fill_side(const struct cw_snapshot *snap, const struct cw_snap_comm *c,
		     const struct sorting *s, uint32_t which, struct cw_arena *a,
		     struct cw_side *ret)
{
	uint32_t n = 0;

	for (uint32_t m = 0; m < c->nranks; m++)
		if (s->side_of[m] == which &&
		    (which != ALIGN_NO_SIDE || has_not_entered(&c->members[m], s->seq)))
			n++;
	*ret = (struct cw_side){ .ranks = cw_arena_new_array(a, uint32_t, n) };
	if (!ret->ranks)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->nranks && n; m++)
		if (s->side_of[m] == which &&
		    (which != ALIGN_NO_SIDE || has_not_entered(&c->members[m], s->seq)))
			ret->ranks[ret->n_ranks++] = c->members[m].rank;
	if (which != ALIGN_NO_SIDE) {
		ret->has_op = true;
		ret->op = *s->sides[which].op;
	}
	align_sort_ranks(snap, ret->ranks, ret->n_ranks);
	return 0;
}

bool align_side_before(const struct cw_snapshot *snap, const struct cw_side *x,
		       const struct cw_side *y)
{
	if (x->n_ranks != y->n_ranks)
		return x->n_ranks > y->n_ranks;
	return compare_labels(&x->ranks[0], &y->ranks[0], (void *)snap) < 0;
}

/*
 * Returns the first field in which b differs from a, in the order of
 * docs/design/verdict.md#classes. If NCCL compares calls of this kind by bytes, we also compare
 * bytes. If no field differs, the calls differ in their order.
 */
static enum cw_detail differing_field(const struct cw_op *a, const struct cw_op *b)
{
	if (a->kind != b->kind)
		return CW_DETAIL_KIND;
	if (cw_signature_is_bytewise(a->kind)) {
		if (a->bytes != b->bytes)
			return a->count == b->count ? CW_DETAIL_DTYPE : CW_DETAIL_COUNT;
	} else {
		if (a->count != b->count)
			return CW_DETAIL_COUNT;
		if (a->dtype != b->dtype)
			return CW_DETAIL_DTYPE;
		if (a->redop != b->redop)
			return CW_DETAIL_REDOP;
	}
	return a->root != b->root ? CW_DETAIL_ROOT : CW_DETAIL_ORDER;
}

static int fill_sides(const struct cw_snapshot *snap, const struct cw_snap_comm *c,
		      const struct sorting *s, struct cw_arena *a, struct alignment *ret)
{
	struct cw_side none;
	uint32_t order[MAX_SIDES];
	int r;

	ret->sides = cw_arena_new_array(a, struct cw_side, s->n_sides + 1);
	if (!ret->sides)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_sides; i++) {
		struct cw_side side;
		uint32_t at = i;

		r = fill_side(snap, c, s, i, a, &side);
		if (r < 0)
			return r;
		for (; at && align_side_before(snap, &side, &ret->sides[at - 1]); at--) {
			ret->sides[at] = ret->sides[at - 1];
			order[at] = order[at - 1];
		}
		ret->sides[at] = side;
		order[at] = i;
		ret->n_compared += side.n_ranks;
		ret->from_seq = lower_seq(ret->from_seq, s->sides[i].first_seq);
	}
	ret->n_sides = s->n_sides;
	if (ret->sides[0].n_ranks > ret->sides[1].n_ranks)
		ret->majority = 0;
	ret->detail = skipped_call_name(&c->members[s->first_member[order[0]]],
					&c->members[s->first_member[order[1]]], s->seq);
	if (!ret->detail)
		ret->detail = differing_field(s->sides[order[0]].op, s->sides[order[1]].op);
	r = fill_side(snap, c, s, ALIGN_NO_SIDE, a, &none);
	if (r < 0)
		return r;
	if (none.n_ranks)
		ret->sides[ret->n_sides++] = none;
	return 0;
}

/*
 * Returns the side of the members that have this history and whose call is known. Returns
 * ALIGN_NO_SIDE if there is no such member, or if these members are on several sides.
 */
static uint32_t side_of_history(const struct cw_snap_comm *c, const struct sorting *s,
				const uint32_t *history_of, uint32_t number)
{
	uint32_t side = ALIGN_NO_SIDE;

	for (uint32_t m = 0; m < c->nranks; m++) {
		if (c->members[m].rank == CW_SNAP_NONE || s->side_of[m] == ALIGN_NO_SIDE ||
		    history_of[c->members[m].rank] != number)
			continue;
		if (side != ALIGN_NO_SIDE && side != s->side_of[m])
			return ALIGN_NO_SIDE;
		side = s->side_of[m];
	}
	return side;
}

/*
 * Puts members with an unknown call on a side. Their window has not arrived or does not reach back
 * to the call. If the member's history equals that of a member on a side, both made the same call.
 * Without this step we would compare only the few members whose windows have arrived.
 */
static int join_by_history(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
			   const struct alignment *al, struct sorting *s)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	const struct call_hashes *h = &al->hashes;
	struct cw_side *histories;
	uint32_t *history_of, n; /* per rank: number of its history, from 1; 0 = not known */
	int r;

	if (!h->differs || s->seq <= h->agreed_seq || s->seq > h->differ_seq)
		return 0;
	r = call_hashes_sides(snap, comm, h, a, &histories, &n);
	if (r < 0)
		return r;
	history_of = cw_arena_new_array(a, uint32_t, snap->n_ranks);
	if (!history_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && i < MAX_SIDES; i++) {
		uint32_t side;

		for (uint32_t k = 0; k < histories[i].n_ranks; k++)
			history_of[histories[i].ranks[k]] = i + 1;
		side = side_of_history(c, s, history_of, i + 1);
		for (uint32_t m = 0; side != ALIGN_NO_SIDE && m < c->nranks; m++)
			if (c->members[m].rank != CW_SNAP_NONE &&
			    history_of[c->members[m].rank] == i + 1 &&
			    s->side_of[m] == ALIGN_NO_SIDE) {
				s->side_of[m] = side;
				s->n[side]++;
			}
	}
	return 0;
}

static int sort_into_sides(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
			   struct alignment *ret)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	struct sorting *s = cw_arena_new(a, struct sorting);
	int r;

	if (!s)
		return -ENOMEM;
	s->seq = ret->seq;
	s->side_of = cw_arena_new_array(a, uint32_t, c->nranks);
	if (!s->side_of)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->nranks; m++) {
		s->side_of[m] = ALIGN_NO_SIDE;
		if (c->members[m].rank == CW_SNAP_NONE)
			continue;
		r = call_step_visit_all(&c->members[m], m, sort_step, s);
		if (r < 0)
			return r;
	}
	if (s->n_sides < 2) {
		/*
		 * The sides can agree here only if the comparison of groups is not transitive. Then
		 * there is no difference to report.
		 */
		ret->seq = 0;
		return 0;
	}
	r = join_by_history(snap, comm, a, ret, s);
	return r < 0 ? r : fill_sides(snap, c, s, a, ret);
}

/* ---- the call itself has left the windows ---- */

/*
 * Fills *ret from the rolling hashes alone: the windows no longer contain the call, so the sides
 * have no op.
 */
static int take_from_hashes(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
			    struct alignment *ret)
{
	struct cw_side *sides;
	uint32_t n;
	int r;

	r = call_hashes_sides(snap, comm, &ret->hashes, a, &sides, &n);
	if (r < 0)
		return r;
	if (n < 2)
		return 0;
	ret->seq = ret->hashes.differ_seq;
	ret->after_seq = ret->hashes.agreed_seq;
	ret->from_seq = ret->after_seq + 1;
	ret->knows_call = false;
	ret->is_proof = true;
	ret->detail = CW_DETAIL_UNKNOWN_CALL;
	ret->sides = sides;
	ret->n_sides = n;
	for (uint32_t i = 0; i < n; i++)
		ret->n_compared += sides[i].n_ranks;
	ret->majority = sides[0].n_ranks > sides[1].n_ranks ? 0 : ALIGN_NO_SIDE;
	return 1;
}

/*
 * True if the histories differed before the first difference in the windows. Windows do not reach
 * back to the start, so an earlier difference may have caused the visible one. Groups of different
 * extent may also explain different hashes.
 */
static bool began_earlier(const struct dispute *d, const struct call_hashes *h)
{
	const uint64_t seen[] = { d->seq, d->grouped_seq, d->extent_seq };
	uint64_t first = 0;

	for (unsigned i = 0; i < sizeof(seen) / sizeof(*seen); i++)
		if (seen[i])
			first = lower_seq(first, seen[i]);
	return h->differs && (!first || first > h->differ_seq);
}

int align_comm(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
	       struct align_scratch *scratch, struct alignment *ret)
{
	const struct cw_snap_comm *c = &snap->comms[comm];
	struct dispute d = { .scratch = scratch };
	int r;

	*ret = (struct alignment){ .majority = ALIGN_NO_SIDE };
	r = find_dispute(c, &d);
	if (r < 0)
		return r;
	r = call_hashes_compare(snap, comm, &scratch->hashes, &ret->hashes);
	if (r < 0)
		return r;
	ret->seq = d.seq ? d.seq : d.grouped_seq;
	ret->is_proof = d.seq != 0;
	ret->knows_call = true;
	if (began_earlier(&d, &ret->hashes))
		r = take_from_hashes(snap, comm, a, ret);
	if (r != 0)
		return r < 0 ? r : 0;
	return ret->seq ? sort_into_sides(snap, comm, a, ret) : 0;
}

void align_scratch_fini(struct align_scratch *scratch)
{
	call_hashes_scratch_fini(&scratch->hashes);
	free(scratch->slots);
	*scratch = (struct align_scratch){ 0 };
}
