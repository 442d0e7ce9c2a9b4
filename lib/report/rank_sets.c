/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's colour is a hash of the properties that a set shares, so ranks with equal colours form a
 * set. We refine the colours by the sets that a rank waits for, until a picture would have too many
 * sets. If even the first colours are too many, we hash fewer properties.
 */
#include "report/rank_sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/signature.h"

/* We stop to refine colours when there are more sets than this. A picture would become crowded. */
#define READABLE_SETS 12u
#define MAX_ROUNDS 4u
/*
 * We hash at most this many gates (calls that ranks wait in) per rank. Only hostile snapshots have
 * more.
 */
#define MAX_GATES 64u

enum detail { DETAIL_NONE, DETAIL_KIND, DETAIL_FAMILY, DETAIL_CALL };

struct maker {
	const struct cw_snapshot *snap;
	struct rank_sets *out;
	uint64_t *color;    /* per rank */
	uint64_t *mask;     /* per gate: mask of the sets that have not entered it */
	bool *is_culprit;   /* per rank */
	uint32_t *by_color; /* ranks, sorted by colour */
	uint32_t n_culprits;
};

/* ---- colours ---- */

static uint64_t color_of_gate(const struct maker *m, const struct gate *g, enum detail detail)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, g->kind);

	if (detail >= DETAIL_KIND)
		h = cw_hash_step(h, g->op_kind);
	if (detail >= DETAIL_FAMILY)
		h = cw_hash_step(h, m->out->comms.of[g->comm]);
	if (detail >= DETAIL_CALL)
		h = cw_hash_step(h, g->seq);
	return h;
}

static uint64_t color_of_rank(const struct maker *m, uint32_t rank, enum detail detail)
{
	const struct waitgraph *g = &m->out->graph;
	const struct cw_snap_rank *r = &m->snap->ranks[rank];
	uint64_t h = cw_hash_step(CW_HASH_INIT, m->is_culprit[rank]), gates = 0;

	/* The loss of a node is one event, independent of its ranks' calls. */
	if (r->node < m->snap->n_nodes && m->snap->nodes[r->node].state != CW_NODE_REPORTING)
		return cw_hash_step(h, UINT64_C(1) << 32 | r->node);
	if (m->is_culprit[rank] && m->n_culprits <= RANK_SETS_MAX_CULPRITS)
		return cw_hash_step(h, rank);
	h = cw_hash_step(h, cw_liveness_is_dead(r->liveness));
	if (detail >= DETAIL_FAMILY)
		h = cw_hash_step(h, r->host_call.kind);
	/*
	 * We add the hashes of the gates: a sum does not depend on the order, which may differ
	 * between ranks.
	 */
	for (uint32_t i = g->wait_start[rank];
	     i < g->wait_start[rank + 1] && i - g->wait_start[rank] < MAX_GATES; i++)
		gates += color_of_gate(m, &g->gates[g->waits[i]], detail);
	if (detail == DETAIL_NONE)
		gates = waitgraph_waits(g, rank);
	return cw_hash_step(h, gates);
}

/* ---- sets of colours ---- */

struct colored {
	uint64_t color;
	int32_t label;
	uint32_t rank;
};

static int compare_colored(const void *a, const void *b)
{
	const struct colored *ca = a, *cb = b;

	if (ca->color != cb->color)
		return ca->color < cb->color ? -1 : 1;
	if (ca->label != cb->label)
		return ca->label < cb->label ? -1 : 1;
	return (ca->rank > cb->rank) - (ca->rank < cb->rank);
}

/* Sorts ranks by colour. Returns the number of colours, or -ENOMEM. */
static int sort_by_color(struct maker *m)
{
	uint32_t n = m->snap->n_ranks;
	struct colored *v = calloc(n ? n : 1, sizeof(*v));
	int colors = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct colored){ m->color[i], m->snap->ranks[i].rank, i };
	qsort(v, n, sizeof(*v), compare_colored);
	for (uint32_t i = 0; i < n; i++) {
		m->by_color[i] = v[i].rank;
		colors += i == 0 || v[i].color != v[i - 1].color;
	}
	free(v);
	return colors;
}

/* Makes the sets. sort_by_color() must have run and returned at most RANK_SETS_MAX. */
static void fill_sets(struct maker *m)
{
	struct rank_sets *out = m->out;

	out->n_sets = 0;
	for (uint32_t i = 0; i < m->snap->n_ranks; i++) {
		uint32_t rank = m->by_color[i];

		if (i == 0 || m->color[rank] != m->color[m->by_color[i - 1]])
			out->sets[out->n_sets++] = (struct rank_set){
				.ranks = &m->by_color[i],
				.is_culprit = m->is_culprit[rank],
				.gate = CW_SNAP_NONE,
				.hops = CW_SNAP_NONE,
			};
		out->sets[out->n_sets - 1].n_ranks++;
		out->set_of[rank] = out->n_sets - 1;
	}
}

/* ---- waits between sets ---- */

static void fill_masks(struct maker *m)
{
	const struct waitgraph *g = &m->out->graph;

	for (uint32_t i = 0; i < g->n_gates; i++) {
		m->mask[i] = 0;
		for (uint32_t k = 0; k < g->gates[i].n_missing; k++)
			m->mask[i] |= UINT64_C(1) << m->out->set_of[g->gates[i].missing[k]];
	}
	/*
	 * Gates of a comm are in order of calls. A rank that has not entered the first gate has not
	 * entered the later ones either.
	 */
	for (uint32_t i = 0; i < g->n_gates; i++) {
		uint32_t at = i;

		if (g->gates[i].lower != CW_SNAP_NONE)
			continue;
		for (; g->gates[at].upper != CW_SNAP_NONE; at = g->gates[at].upper)
			m->mask[g->gates[at].upper] |= m->mask[at];
	}
}

static uint64_t mask_of_rank(const struct maker *m, uint32_t rank)
{
	const struct waitgraph *g = &m->out->graph;
	uint64_t mask = 0;

	for (uint32_t i = g->wait_start[rank]; i < g->wait_start[rank + 1]; i++)
		mask |= m->mask[g->waits[i]];
	return mask;
}

static void fill_waits(struct maker *m)
{
	const struct waitgraph *g = &m->out->graph;

	for (uint32_t rank = 0; rank < m->snap->n_ranks; rank++) {
		struct rank_set *set = &m->out->sets[m->out->set_of[rank]];

		set->waits_for |= mask_of_rank(m, rank);
		for (uint32_t i = g->wait_start[rank]; i < g->wait_start[rank + 1]; i++) {
			const struct gate *gate = &g->gates[g->waits[i]], *longest;

			if (!gate->n_missing_all && !gate->n_unseen)
				set->is_full = true;
			if (gate->n_unseen > set->n_unseen)
				set->n_unseen = gate->n_unseen;
			longest = set->gate == CW_SNAP_NONE ? NULL : &g->gates[set->gate];
			if (!longest || (gate->since_ns && (!longest->since_ns ||
							    gate->since_ns < longest->since_ns)))
				set->gate = g->waits[i];
		}
	}
}

/*
 * Sets each set's distance to a culprit. Without culprits, it is the distance to a call that all
 * visible members have entered. In that case the cause is inside the call or out of view.
 */
static void fill_hops(struct rank_sets *out)
{
	bool has_culprit = out->n_sets && out->sets[0].is_culprit;
	uint64_t found = 0, before;
	uint32_t hops = 0;

	for (uint32_t i = 0; i < out->n_sets; i++)
		has_culprit |= out->sets[i].is_culprit;
	for (uint32_t i = 0; i < out->n_sets; i++) {
		struct rank_set *s = &out->sets[i];

		if (has_culprit ? s->is_culprit : s->is_full || s->n_unseen) {
			s->hops = 0;
			found |= UINT64_C(1) << i;
		}
	}
	do {
		before = found;
		hops++;
		for (uint32_t i = 0; i < out->n_sets; i++) {
			struct rank_set *s = &out->sets[i];

			if (s->hops != CW_SNAP_NONE || !(s->waits_for & before))
				continue;
			s->hops = hops;
			found |= UINT64_C(1) << i;
		}
	} while (found != before);
}

/* ---- order ---- */

static int compare_sets(const void *a, const void *b)
{
	const struct rank_set *sa = a, *sb = b;

	if (sa->is_culprit != sb->is_culprit)
		return sa->is_culprit ? -1 : 1;
	if (sa->hops != sb->hops)
		return sa->hops < sb->hops ? -1 : 1;
	if (sa->n_ranks != sb->n_ranks && !sa->is_culprit)
		return sa->n_ranks > sb->n_ranks ? -1 : 1;
	return sa->ranks[0] < sb->ranks[0] ? -1 : 1;
}

static void sort_sets(struct maker *m)
{
	struct rank_sets *out = m->out;
	uint32_t place[RANK_SETS_MAX], *order[RANK_SETS_MAX];

	for (uint32_t i = 0; i < out->n_sets; i++)
		order[i] = out->sets[i].ranks;
	qsort(out->sets, out->n_sets, sizeof(*out->sets), compare_sets);
	for (uint32_t i = 0; i < out->n_sets; i++)
		for (uint32_t k = 0; k < out->n_sets; k++)
			if (order[i] == out->sets[k].ranks)
				place[i] = k;
	for (uint32_t i = 0; i < out->n_sets; i++) {
		uint64_t mask = out->sets[i].waits_for;

		out->sets[i].waits_for = 0;
		for (uint32_t k = 0; k < out->n_sets; k++)
			if (mask & UINT64_C(1) << k)
				out->sets[i].waits_for |= UINT64_C(1) << place[k];
	}
	for (uint32_t r = 0; r < m->snap->n_ranks; r++)
		out->set_of[r] = place[out->set_of[r]];
}

/* ---- the whole procedure ---- */

static int refine(struct maker *m, uint64_t *before)
{
	int colors = (int)m->out->n_sets;

	for (uint32_t round = 0; round < MAX_ROUNDS; round++) {
		int n;

		fill_masks(m);
		memcpy(before, m->color, m->snap->n_ranks * sizeof(*before));
		for (uint32_t i = 0; i < m->snap->n_ranks; i++)
			m->color[i] = cw_hash_step(m->color[i], mask_of_rank(m, i));
		n = sort_by_color(m);
		if (n < 0)
			return n;
		if ((uint32_t)n > READABLE_SETS || n == colors) {
			memcpy(m->color, before, m->snap->n_ranks * sizeof(*before));
			n = sort_by_color(m);
			if (n >= 0)
				fill_sets(m);
			return n < 0 ? n : 0;
		}
		colors = n;
		fill_sets(m);
	}
	return 0;
}

static int make(struct maker *m)
{
	struct cw_arena *arena = &m->out->arena;
	uint64_t *before = cw_arena_new_array(arena, uint64_t, m->snap->n_ranks);
	int r = 0;

	m->color = cw_arena_new_array(arena, uint64_t, m->snap->n_ranks);
	m->mask = cw_arena_new_array(arena, uint64_t, m->out->graph.n_gates);
	m->by_color = cw_arena_new_array(arena, uint32_t, m->snap->n_ranks);
	m->out->set_of = cw_arena_new_array(arena, uint32_t, m->snap->n_ranks);
	if (!before || !m->color || !m->mask || !m->by_color || !m->out->set_of)
		return -ENOMEM;
	/* We choose the finest colours that give few enough sets. */
	for (int detail = DETAIL_CALL; detail >= DETAIL_NONE; detail--) {
		for (uint32_t i = 0; i < m->snap->n_ranks; i++)
			m->color[i] = color_of_rank(m, i, (enum detail)detail);
		r = sort_by_color(m);
		if (r < 0)
			return r;
		if ((uint32_t)r <= RANK_SETS_MAX)
			break;
	}
	fill_sets(m);
	r = refine(m, before);
	if (r < 0)
		return r;
	fill_masks(m);
	fill_waits(m);
	fill_hops(m->out);
	sort_sets(m);
	return 0;
}

int rank_sets_make(const struct cw_snapshot *snap, const uint32_t *culprits, uint32_t n,
		   struct rank_sets *ret)
{
	struct maker m = { .snap = snap, .out = ret };
	int r;

	*ret = (struct rank_sets){ 0 };
	m.is_culprit = cw_arena_new_array(&ret->arena, bool, snap->n_ranks);
	if (!m.is_culprit)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (culprits[i] >= snap->n_ranks || m.is_culprit[culprits[i]])
			continue;
		m.is_culprit[culprits[i]] = true;
		m.n_culprits++;
	}
	r = comm_families_find(snap, &ret->arena, &ret->comms);
	if (r == 0)
		r = cw_waitgraph_build(snap, &ret->arena, &ret->graph);
	return r < 0 ? r : make(&m);
}

void rank_sets_fini(struct rank_sets *sets)
{
	cw_arena_fini(&sets->arena);
	*sets = (struct rank_sets){ 0 };
}
