/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/judge/modules.h"

#include <string.h>

/*
 * A loss scale that has grown too large backs off at most this many times in a row
 * (docs/numerics.md).
 */
#define ROW_MAX 2u

static bool is_bad(const struct cw_modules_step *s)
{
	return s->n_bad || s->n_bad_gradients;
}

/* True if loss scaling explains the bad steps [first, end). */
static bool is_scaling(const struct cw_modules_rank *k, uint32_t first, uint32_t end)
{
	if (end - first > ROW_MAX || end == k->n_steps)
		return false;
	for (uint32_t i = first; i < end; i++)
		/* Comparisons with NaN are false, so an unknown scale explains nothing. */
		if (k->steps[i].n_bad || !(k->steps[i + 1].scale < k->steps[i].scale))
			return false;
	return true;
}

static void note_row(struct cw_modules_report *ret, uint32_t rank, const struct cw_modules_rank *k,
		     uint32_t first, uint32_t end)
{
	ret->n_scaling_steps += end - first;
	if (ret->n_rows == CW_MODULES_ROWS) {
		ret->n_rows_over_limit++;
		return;
	}
	ret->rows[ret->n_rows++] = (struct cw_modules_row){
		.rank = rank,
		.n_steps = end - first,
		.step = k->steps[first].step,
		.before = k->steps[first].scale,
		.after = k->steps[end].scale,
	};
}

/*
 * True if a comes before b, in the same step. A rank that received the number comes after its
 * sender. Otherwise clocks decide.
 */
static bool is_before(const struct cw_modules_event *a, const struct cw_modules_event *b)
{
	if (a->is_received != b->is_received)
		return b->is_received;
	return strcmp(a->at, b->at) < 0;
}

/*
 * Sets the report's first event to the first one of a rank in steps [from, end), unless the report
 * has an earlier one.
 */
static void note_first(struct cw_modules_report *ret, const struct cw_modules_rank *ranks,
		       uint32_t rank, uint32_t from, uint32_t end)
{
	const struct cw_modules_rank *k = &ranks[rank];
	const struct cw_modules_event *e = NULL, *known = NULL;
	uint32_t i = 0;

	for (; i < k->n_events && !e; i++)
		if (k->events[i].step >= k->steps[from].step &&
		    k->events[i].step <= k->steps[end - 1].step)
			e = &k->events[i];
	if (!e)
		return;
	if (ret->has_first)
		known = &ranks[ret->rank].events[ret->event];
	if (known && known->step < e->step)
		return;
	ret->is_first_by_clock =
		known && known->step == e->step && known->is_received == e->is_received;
	if (known && known->step == e->step && !is_before(e, known))
		return;
	ret->has_first = true;
	ret->rank = rank;
	ret->event = i - 1;
}

static void judge_rank(const struct cw_modules_rank *ranks, uint32_t rank,
		       struct cw_modules_report *ret)
{
	const struct cw_modules_rank *k = &ranks[rank];
	bool is_first_found = false;

	for (uint32_t i = 0, end; i < k->n_steps; i = end) {
		end = i + 1;
		if (!is_bad(&k->steps[i]))
			continue;
		while (end < k->n_steps && is_bad(&k->steps[end]))
			end++;
		if (is_scaling(k, i, end)) {
			note_row(ret, rank, k, i, end);
			continue;
		}
		ret->n_bad_steps += end - i;
		if (!is_first_found)
			note_first(ret, ranks, rank, i, end);
		is_first_found = true;
	}
}

void cw_modules_judge(const struct cw_modules_rank *ranks, uint32_t n,
		      struct cw_modules_report *ret)
{
	*ret = (struct cw_modules_report){ .rank = 0 };
	for (uint32_t i = 0; i < n; i++)
		judge_rank(ranks, i, ret);
}
