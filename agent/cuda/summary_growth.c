/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/summary_growth.h"

#include <string.h>

#include "model/op.h"

/* A series is leaving its type if it will exceed the type within this many further summaries. */
#define AHEAD 2.0f
/* Limits of an even pace: least and most growth per summary, relative to the mean growth. */
#define PACE_MIN 0.25f
#define PACE_MAX 4.0f

/*
 * Returns log2 of a finite number above 0, to 0.01. We take the exponent, and approximate the rest
 * by a parabola through the ends of an octave. The result for denormal doubles is wrong, but they
 * are far from the end of any type.
 */
static float log2_of(double v)
{
	uint64_t bits;
	float exponent, rest;

	memcpy(&bits, &v, sizeof(bits));
	exponent = (float)(int)(bits >> 52 & 0x7ff) - 1023;
	rest = (float)(bits & ((UINT64_C(1) << 52) - 1)) * 0x1p-52f;
	return exponent + rest + 0.344f * rest * (1 - rest);
}

/* Returns log2 of the type's largest finite number; 0 if the type is not floating point. */
static float end_of(unsigned dtype)
{
	switch (dtype) {
	case CW_DTYPE_FP16:
		return 16;
	case CW_DTYPE_BF16:
	case CW_DTYPE_FP32:
		return 128;
	case CW_DTYPE_FP64:
		return 1024;
	case CW_DTYPE_FP8_E4M3:
		return 8.807f;
	case CW_DTYPE_FP8_E5M2:
		return 15.807f;
	default:
		return 0;
	}
}

static bool is_alike(const struct cw_rec_summary *a, const struct cw_rec_summary *b)
{
	return a->comm == b->comm && a->comm_generation == b->comm_generation &&
	       a->kind == b->kind && a->dtype == b->dtype && a->is_output == b->is_output &&
	       a->offered == b->offered;
}

/*
 * Finds the first series of this call that has no summary in this step; NULL = none. If the program
 * does not mark its steps, finds the first series of the call.
 */
static struct cw_growth_series *find(struct cw_growth *g, const struct cw_rec_summary *s)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct cw_growth_series *of = &g->series[i];

		if (is_alike(&of->last, s) &&
		    (!s->step_plus_1 || of->last.step_plus_1 != s->step_plus_1))
			return of;
	}
	if (g->n == CW_GROWTH_SERIES) {
		g->is_full = true;
		return NULL;
	}
	return &g->series[g->n++];
}

/*
 * Adds a summary to a series. A NaN, an Inf or a tensor of only zeros restarts the series. Returns
 * true once the series has CW_GROWTH_STEPS growing values.
 */
static bool extend(struct cw_growth_series *of, const struct cw_rec_summary *s)
{
	float value;

	of->last = *s;
	if (s->nans || s->infs || !(s->abs_max > 0)) {
		of->n = 0;
		return false;
	}
	value = log2_of(s->abs_max);
	if (of->n && value <= of->log2[of->n - 1])
		of->n = 0;
	if (of->n == CW_GROWTH_STEPS) {
		memmove(of->log2, of->log2 + 1, sizeof(of->log2) - sizeof(of->log2[0]));
		of->n--;
	}
	of->log2[of->n++] = value;
	return of->n == CW_GROWTH_STEPS;
}

static bool is_even(const float v[static CW_GROWTH_STEPS], float mean)
{
	for (uint32_t i = 1; i < CW_GROWTH_STEPS; i++) {
		float growth = v[i] - v[i - 1];

		if (growth < PACE_MIN * mean || growth > PACE_MAX * mean)
			return false;
	}
	return true;
}

bool cw_growth_is_leaving(struct cw_growth *g, const struct cw_rec_summary *s)
{
	float end = end_of(s->dtype), mean;
	struct cw_growth_series *of = end > 0 ? find(g, s) : NULL;

	if (!of || !extend(of, s))
		return false;
	mean = (of->log2[CW_GROWTH_STEPS - 1] - of->log2[0]) / (CW_GROWTH_STEPS - 1);
	return is_even(of->log2, mean) && of->log2[CW_GROWTH_STEPS - 1] + AHEAD * mean >= end;
}
