/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds calls whose numbers approach the limit of their type. A call's value is the largest
 * magnitude of its inputs and outputs. For a sum whose members we all sampled, it is the sum of the
 * members' largest inputs, an upper bound of the output. The value alone means little, because loss
 * scaling deliberately keeps gradients within a factor of two of infinity. So an alarm requires a
 * trend: the values grow from step to step, too steadily for noise, and would leave the type within
 * some steps.
 *
 * When a loss scale changes, all calls of a communicator jump together by its factor. Before the
 * jump, most calls change little for some steps. We remove such jumps before we look for a trend.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/op.h"
#include "numerics/judge/numerics_parts.h"

/* A trend must reach the limit within this many steps from now. */
#define HORIZON 16.0
/*
 * A short series must grow with every step and at an even pace. A long series may have noise. By
 * chance, noise exceeds these numbers of standard errors in less than one of 10^8 windows
 * (Student's t with 6 and 30 degrees of freedom). The conditions on order and pace make a false
 * alarm of a short series rarer still.
 */
#define SHORT_STEPS 8u
#define SHORT_ERRORS 10.0
#define SHORT_PACE 0.25 /* the least growth of a step, relative to the mean growth */
#define LONG_STEPS 32u
#define LONG_ERRORS 9.0
/*
 * A change of scale. log2 of its factor is JUMP, give or take JUMP_SLACK. In the STILL_STEPS steps
 * before it, log2 of the calls' values changes by at most STILL.
 */
#define JUMP 1.0
#define JUMP_SLACK 0.25
#define STILL 0.25
#define STILL_STEPS 3u

struct point {
	uint32_t comm, slot, sample;
	uint64_t step;
	double value;    /* log2; infinite if the number has left the type */
	double raw;      /* log2, as measured */
	double adjusted; /* log2, without changes of scale */
	bool is_sum;
};

struct points {
	struct point *v;
	uint32_t n;
};

static double largest(const struct cw_numerics_sample *l)
{
	return cw_numerics_is_bad(l) ? INFINITY : l->abs_max;
}

/* Computes the point (value at a step) of one call. Returns false if the call has no value. */
static bool point_of(const struct numerics_parts *p, uint32_t first, uint32_t end,
		     struct point *ret)
{
	const struct cw_numerics_job *job = p->job;
	const struct cw_numerics_sample *l = &job->samples[p->by_call[first]];
	double most = -1, sum = 0;
	uint32_t n_inputs = 0, most_sample = p->by_call[first], last_rank = CW_NUMERICS_NONE;

	for (uint32_t i = first; i < end; i++) {
		const struct cw_numerics_sample *m = &job->samples[p->by_call[i]];

		if (m->dtype != l->dtype)
			return false;
		if (largest(m) > most) {
			most = largest(m);
			most_sample = p->by_call[i];
		}
		if (!m->is_output && m->rank != last_rank) {
			sum += largest(m);
			last_rank = m->rank;
			n_inputs++;
		}
	}
	*ret = (struct point){
		.comm = l->comm,
		.slot = p->at[p->by_call[first]].slot,
		.step = p->at[p->by_call[first]].step,
		.sample = most_sample,
		.raw = most,
	};
	if (l->redop == CW_REDOP_SUM && n_inputs == job->comms[l->comm].nranks && sum > most) {
		ret->raw = sum;
		ret->is_sum = true;
	}
	ret->value = ret->raw > 0 ? log2(ret->raw) : -INFINITY;
	return ret->raw > 0;
}

static int compare_by_step(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (x->slot > y->slot) - (x->slot < y->slot);
}

static int compare_by_slot(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

static uint32_t step_end(const struct points *ps, uint32_t i)
{
	uint32_t k = i + 1;

	while (k < ps->n && ps->v[k].comm == ps->v[i].comm && ps->v[k].step == ps->v[i].step)
		k++;
	return k;
}

/*
 * Returns the median change from the points [a, b) to [b, c), both sorted by slot. Uses v as
 * scratch space.
 */
static double change_of(const struct points *ps, uint32_t a, uint32_t b, uint32_t c, double *v)
{
	size_t n = 0;

	for (uint32_t i = a, k = b; i < b && k < c;) {
		const struct point *x = &ps->v[i], *y = &ps->v[k];

		if (x->slot == y->slot && isfinite(x->value) && isfinite(y->value))
			v[n++] = y->value - x->value;
		if (x->slot <= y->slot)
			i++;
		if (y->slot <= x->slot)
			k++;
	}
	return numerics_median(v, n);
}

/* Removes the jumps of each communicator from its points, which must be sorted by step. */
static int adjust(struct points *ps)
{
	double *v = calloc((size_t)ps->n + 1, sizeof(*v)), jumps = 0;
	uint32_t before = 0, n_still = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0, end; i < ps->n; before = i, i = end) {
		end = step_end(ps, i);
		if (i == 0 || ps->v[before].comm != ps->v[i].comm) {
			jumps = 0;
			n_still = 0;
		} else {
			double change = change_of(ps, before, i, end, v);
			bool is_jump =
				n_still >= STILL_STEPS && fabs(fabs(change) - JUMP) <= JUMP_SLACK;

			if (is_jump)
				jumps += change;
			else
				n_still = fabs(change) <= STILL ? n_still + 1 : 0;
		}
		for (uint32_t k = i; k < end; k++)
			ps->v[k].adjusted = ps->v[k].value - jumps;
	}
	free(v);
	return 0;
}

/*
 * Fits a line through finite points and returns its slope. *ret_errors is the slope in units of its
 * standard error.
 */
static double slope_of(const struct point *v, uint32_t n, double *ret_errors)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0, rest = 0, slope;

	for (uint32_t i = 0; i < n; i++) {
		mean_x += (double)(v[i].step - v[0].step) / n;
		mean_y += v[i].adjusted / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(v[i].step - v[0].step) - mean_x;

		xx += x * x;
		xy += x * (v[i].adjusted - mean_y);
	}
	if (xx <= 0) {
		*ret_errors = 0;
		return 0;
	}
	slope = xy / xx;
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(v[i].step - v[0].step) - mean_x;
		double off = v[i].adjusted - mean_y - slope * x;

		rest += off * off;
	}
	/*
	 * Values that lie exactly on a line have no error, and the division would fail. So we add a
	 * little. Formats round to some digits anyway.
	 */
	rest = rest / (n - 2) + 1e-12;
	*ret_errors = slope / sqrt(rest / xx);
	return slope;
}

static bool is_even(const struct point *v, uint32_t n)
{
	double mean = (v[n - 1].adjusted - v[0].adjusted) / (n - 1);

	for (uint32_t i = 1; i < n; i++)
		if (v[i].adjusted - v[i - 1].adjusted < SHORT_PACE * mean)
			return false;
	return mean > 0;
}

/*
 * True if the n points that end with `last` grow and lead out of the type. *ret_slope is their
 * growth.
 */
static bool is_leaving(const struct point *last, uint32_t n, double limit, double *ret_slope)
{
	double errors, slope;

	if (n >= LONG_STEPS) {
		slope = slope_of(last + 1 - LONG_STEPS, LONG_STEPS, &errors);
		*ret_slope = slope;
		if (errors >= LONG_ERRORS && last->value + slope * HORIZON >= limit)
			return true;
	}
	if (n < SHORT_STEPS || !is_even(last + 1 - SHORT_STEPS, SHORT_STEPS))
		return false;
	slope = slope_of(last + 1 - SHORT_STEPS, SHORT_STEPS, &errors);
	*ret_slope = slope;
	return errors >= SHORT_ERRORS && last->value + slope * HORIZON >= limit;
}

/* Judges the points of one slot, sorted by step. */
static void judge_slot(const struct numerics_parts *p, const struct point *v, uint32_t n,
		       struct cw_numerics_report *ret)
{
	double most = cw_numerics_limit(p->job->samples[v[0].sample].dtype), slope = 0, left;
	uint64_t warned = 0;
	bool is_warned = false;
	uint32_t i = 0;

	if (most == 0)
		return;
	for (; i < n && isfinite(v[i].value); i++) {
		bool leaves = is_leaving(&v[i], i + 1, log2(most), &slope);

		if (leaves && !is_warned)
			warned = v[i].step;
		is_warned = leaves;
	}
	if (!is_warned)
		return;
	if (ret->n_headroom == CW_NUMERICS_MAX) {
		ret->n_headroom_over_limit++;
		return;
	}
	i--;
	left = (log2(most) - v[i].value) / slope;
	ret->headroom[ret->n_headroom++] = (struct cw_numerics_headroom){
		.sample = v[i].sample,
		.is_sum = v[i].is_sum,
		.value = v[i].raw,
		.limit = most,
		.growth = exp2(slope),
		.steps_left = left > 0 ? left : 0,
		.warned_step = warned,
	};
}

int numerics_find_headroom(const struct numerics_parts *p, struct cw_numerics_report *ret)
{
	struct points ps = { .v = calloc((size_t)p->n + 1, sizeof(*ps.v)) };
	int r;

	if (!ps.v)
		return -ENOMEM;
	for (uint32_t i = 0, end; i < p->n; i = end) {
		end = numerics_call_end(p, i);
		ps.n += point_of(p, i, end, &ps.v[ps.n]);
	}
	if (ps.n)
		qsort(ps.v, ps.n, sizeof(*ps.v), compare_by_step);
	r = adjust(&ps);
	if (r == 0 && ps.n)
		qsort(ps.v, ps.n, sizeof(*ps.v), compare_by_slot);
	for (uint32_t i = 0, end; r == 0 && i < ps.n; i = end) {
		for (end = i + 1; end < ps.n && ps.v[end].comm == ps.v[i].comm &&
				  ps.v[end].slot == ps.v[i].slot;)
			end++;
		judge_slot(p, &ps.v[i], end - i, ret);
	}
	free(ps.v);
	return r;
}
