/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An element matters only by the given sets that contain it, which we note as a mask. Elements with
 * equal masks are one class. We search with a rising limit: each hitting set must meet the first
 * set that is still open, so we try each class of that set. A class is in some smallest hitting set
 * if one element less suffices for all sets that the class does not meet.
 */
#include "analysis/waits/hitting_sets.h"

#include <errno.h>
#include <stdlib.h>

/* Steps of the search. They take a few milliseconds, which an evaluation can spare. */
#define BUDGET 200000u

struct search {
	uint64_t *masks; /* one per class */
	uint32_t n;
	uint32_t steps;
};

static int compare_masks(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* True if `most` classes can meet all sets of `open`. Depth: most. */
static bool can_meet(struct search *s, uint64_t open, uint32_t most)
{
	uint64_t first = open & -open;

	if (!open)
		return true;
	if (!most)
		return false;
	for (uint32_t i = 0; i < s->n && s->steps < BUDGET; i++) {
		s->steps++;
		if (s->masks[i] & first && can_meet(s, open & ~s->masks[i], most - 1))
			return true;
	}
	return false;
}

/* Sorts the masks of all elements, and keeps each once. */
static void make_classes(struct search *s, uint32_t n_elements)
{
	if (n_elements > 1)
		qsort(s->masks, n_elements, sizeof(*s->masks), compare_masks);
	for (uint32_t i = 0; i < n_elements; i++)
		if (s->masks[i] && (!s->n || s->masks[i] != s->masks[s->n - 1]))
			s->masks[s->n++] = s->masks[i];
}

int hitting_sets_smallest(const struct hitting_set *sets, uint32_t n, uint32_t n_elements,
			  struct cw_arena *a, bool *is_in)
{
	uint64_t *of = cw_arena_new_array(a, uint64_t, n_elements), all = 0;
	struct search s = { .masks = cw_arena_new_array(a, uint64_t, n_elements) };
	bool *is_used = cw_arena_new_array(a, bool, n_elements); /* of each class */
	uint32_t size = 0;

	if (!of || !s.masks || !is_used)
		return -ENOMEM;
	if (n > HITTING_SETS_MAX)
		return HITTING_SETS_TOO_HARD;
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < sets[i].n; k++)
			of[sets[i].elements[k]] |= UINT64_C(1) << i;
		all |= sets[i].n ? UINT64_C(1) << i : 0;
	}
	for (uint32_t i = 0; i < n_elements; i++)
		s.masks[i] = of[i];
	make_classes(&s, n_elements);
	while (size < n && !can_meet(&s, all, size) && s.steps < BUDGET)
		size++;
	for (uint32_t i = 0; i < s.n && s.steps < BUDGET; i++)
		is_used[i] = can_meet(&s, all & ~s.masks[i], size - 1);
	for (uint32_t k = 0; k < n_elements; k++) {
		const uint64_t *class =
			s.n ? bsearch(&of[k], s.masks, s.n, sizeof(of[k]), compare_masks) : NULL;

		is_in[k] = class && is_used[class - s.masks];
	}
	return s.steps < BUDGET ? 0 : HITTING_SETS_TOO_HARD;
}
