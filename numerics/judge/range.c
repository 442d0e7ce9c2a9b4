/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds tensors whose numbers lie at an end of their type's range, although none is infinite. At
 * the upper end, the 8-bit types saturate instead of becoming infinite (e4m3 has no infinity; casts
 * to e5m2 saturate, too). At the lower end, numbers that should differ by a factor have few digits
 * or none. One summary proves nothing, because most tensors have some elements at either end. We
 * report only what holds in several consecutive steps, up to the newest one.
 *
 * At the upper end, a scale that follows a tensor's largest number leaves one element at the limit.
 * A scale that follows the tensor's history leaves the elements that have grown since. One element
 * in a hundred is too many: for normally distributed numbers it means a scale that is too large by
 * a factor of two. We ignore tensors of one value, because the scale may fit that value.
 *
 * At the lower end, we report a tensor if half of its nonzero elements are denormal, although all
 * elements would still fit if they were larger by a factor. If they would not fit, no scale helps,
 * because the type is too narrow for the tensor. Then we report nothing.
 */
#include <math.h>

#include "model/op.h"
#include "numerics/judge/numerics_parts.h"

/* Number of consecutive steps that must show too large a share. */
#define STEPS 3u
/* In a tensor with fewer elements than this, the share is noise. */
#define ELEMENTS_MIN 1000u
#define LIMIT_SHARE 0.01
#define DENORMAL_SHARE 0.5
/*
 * We report a tensor at the lower end only if its numbers could grow by this factor. Four increases
 * of a loss scale make this factor. A tensor needs less room for its own growth.
 */
#define ROOM_MIN 16.0

static double share_at_limit(const struct cw_numerics_sample *l)
{
	bool is_narrow = l->dtype == CW_DTYPE_FP8_E4M3 || l->dtype == CW_DTYPE_FP8_E5M2;

	if (!is_narrow || l->abs_max < cw_numerics_limit(l->dtype) || l->abs_min == l->abs_max)
		return 0;
	return (double)l->at_limit;
}

/* Returns the share of denormal numbers among the nonzero elements. */
static double share_denormal(const struct cw_numerics_sample *l)
{
	uint64_t n = l->elements - l->zeros;

	if (n < ELEMENTS_MIN)
		return 0;
	return (double)l->denormal * (double)l->elements / (double)n;
}

/*
 * Returns the factor by which all values could grow before a sampled value, or a sum of such
 * values, becomes infinite.
 */
static double room_of(const struct cw_numerics_job *job, const struct cw_numerics_sample *l)
{
	bool is_summed = !l->is_output && l->redop == CW_REDOP_SUM;
	double most = l->abs_max * (is_summed ? job->comms[l->comm].nranks : 1);

	if (cw_numerics_is_bad(l))
		return 0;
	return most > 0 ? cw_numerics_limit(l->dtype) / most : INFINITY;
}

/* Returns the share of elements at this end if it is too large, else 0. */
static double share_of(const struct cw_numerics_sample *l, enum cw_numerics_end end)
{
	double share, least = end == CW_NUMERICS_UPPER ? LIMIT_SHARE : DENORMAL_SHARE;

	if (cw_numerics_limit(l->dtype) == 0 || cw_numerics_is_bad(l) || l->zeros > l->elements ||
	    l->elements < ELEMENTS_MIN)
		return 0;
	share = end == CW_NUMERICS_UPPER ? share_at_limit(l) : share_denormal(l);
	return share >= least ? fmin(share, 1) : 0;
}

/*
 * Returns the number of newest steps in which the share is too large. Summaries [first, end) of
 * by_series belong to one rank and are sorted by step.
 */
static uint32_t steps_of(const struct numerics_parts *p, uint32_t first, uint32_t end,
			 enum cw_numerics_end which)
{
	uint32_t n = 0;

	while (end > first && share_of(&p->job->samples[p->by_series[end - 1]], which) > 0) {
		end--;
		n++;
	}
	return n;
}

static bool is_same_slot(const struct numerics_parts *p, uint32_t i, uint32_t k)
{
	return p->job->samples[i].comm == p->job->samples[k].comm && p->at[i].slot == p->at[k].slot;
}

static uint32_t series_end(const struct numerics_parts *p, uint32_t first)
{
	uint32_t i = p->by_series[first], end = first + 1;
	const struct cw_numerics_sample *l = &p->job->samples[i];

	for (; end < p->n; end++) {
		const struct cw_numerics_sample *m = &p->job->samples[p->by_series[end]];

		if (!is_same_slot(p, i, p->by_series[end]) || m->rank != l->rank ||
		    m->is_output != l->is_output)
			break;
	}
	return end;
}

/*
 * Judges one slot: the summaries [first, end) of by_series, of all ranks. Reports at most one
 * range.
 */
static void judge_slot(const struct numerics_parts *p, uint32_t first, uint32_t end,
		       enum cw_numerics_end which, struct cw_numerics_report *ret)
{
	struct cw_numerics_range worst = { .end = which, .room = INFINITY };

	for (uint32_t i = first, next; i < end; i = next) {
		const struct cw_numerics_sample *newest;
		uint32_t n;
		double share;

		next = series_end(p, i);
		newest = &p->job->samples[p->by_series[next - 1]];
		worst.room = fmin(worst.room, room_of(p->job, newest));
		n = steps_of(p, i, next, which);
		share = share_of(newest, which);
		if (n < STEPS || share <= worst.share)
			continue;
		worst.sample = p->by_series[next - 1];
		worst.share = share;
		worst.n_steps = n;
	}
	if (worst.share == 0 || (which == CW_NUMERICS_LOWER && worst.room < ROOM_MIN))
		return;
	if (ret->n_ranges == CW_NUMERICS_MAX) {
		ret->n_ranges_over_limit++;
		return;
	}
	ret->ranges[ret->n_ranges++] = worst;
}

void numerics_find_ranges(const struct numerics_parts *p, struct cw_numerics_report *ret)
{
	for (uint32_t i = 0, end; i < p->n; i = end) {
		end = i + 1;
		while (end < p->n && is_same_slot(p, p->by_series[i], p->by_series[end]))
			end++;
		judge_slot(p, i, end, CW_NUMERICS_UPPER, ret);
		judge_slot(p, i, end, CW_NUMERICS_LOWER, ret);
	}
}
