/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allowed difference of statistics, if elements may differ by |a - b| <= atol + rtol max(|a|,
 * |b|). Of N elements then
 *
 *	the largest magnitude differs by no more than   atol + rtol absmax
 *	the norm by no more than                        atol √N + rtol (l2 a + l2 b)
 *	the mean by no more than                        atol + rtol (l2 a + l2 b) / √N
 *
 * The bound of the norm follows from the triangle inequality and max(|a|, |b|) <= |a| + |b|. Its
 * two terms are nearly equal, so we allow the larger norm times rtol. The bound of the mean follows
 * because the mean of magnitudes never exceeds the root of the mean of squares.
 *
 * So a value outside its bound proves that elements are outside theirs. A value within its bound
 * proves nothing about an element. We compare a mean near zero with the size of the elements and
 * not with itself. Otherwise sums that cancel would raise alarms.
 */
#include <math.h>

#include "numerics/compare/baseline.h"

/*
 * Relative error of the statistics themselves: the rounding of rows (2^-37 each), and the possible
 * error of sums of doubles.
 */
#define OWN 3e-11

void cw_baseline_options_init(struct cw_baseline_options *options)
{
	/*
	 * These are torch.testing.assert_close's rtol, with exceptions. assert_close allows fp16
	 * one unit in the last place (1e-3) and bf16 two. We allow fp16 two units, because both the
	 * inputs and the output of a sum are rounded. For 8-bit floats we allow one.
	 */
	static const struct cw_baseline_tolerance of[CW_DTYPE__MAX] = {
		[CW_DTYPE_FP16] = { .rtol = 2e-3 },      [CW_DTYPE_FP32] = { .rtol = 1.3e-6 },
		[CW_DTYPE_FP64] = { .rtol = 1e-7 },      [CW_DTYPE_BF16] = { .rtol = 1.6e-2 },
		[CW_DTYPE_FP8_E4M3] = { .rtol = 0.125 }, [CW_DTYPE_FP8_E5M2] = { .rtol = 0.25 },
	};

	*options = (struct cw_baseline_options){ .is_kind_denied = { false } };
	memcpy(options->of, of, sizeof(of));
}

/*
 * Returns the number of elements of one side. NCCL counts the part of one rank, but a summary
 * covers the whole buffer (agent/cuda/tensor.c).
 */
static double elements(const struct cw_baseline_row *row, enum cw_baseline_side side,
		       uint32_t nranks, bool are_groups)
{
	double n = (double)cw_baseline_row_count(row), parts = nranks > 0 ? nranks : 1;

	switch (row->kind) {
	case CW_BASELINE_KIND_OPERATOR:
		return side == CW_BASELINE_IN ? (double)row->root_or_peer : n;
	case CW_OP_ALL_TO_ALL:
		return n * parts;
	case CW_OP_REDUCE_SCATTER: /* a row of a group comparison has all parts */
		return side == CW_BASELINE_IN || are_groups ? n * parts : n;
	case CW_OP_SCATTER:
		return side == CW_BASELINE_IN ? n * parts : n;
	case CW_OP_ALL_GATHER:
	case CW_OP_GATHER:
		return side == CW_BASELINE_OUT ? n * parts : n;
	default:
		return n;
	}
}

/* Returns the allowed difference of one value, by the formulas above. */
static double allowed_of(const struct cw_baseline_row *a, const struct cw_baseline_row *b,
			 enum cw_baseline_side side, enum cw_baseline_value value, double n,
			 const struct cw_baseline_tolerance *t)
{
	double l2 = fmax(cw_baseline_row_value(a, side, CW_BASELINE_L2),
			 cw_baseline_row_value(b, side, CW_BASELINE_L2));
	double absmax = fmax(cw_baseline_row_value(a, side, CW_BASELINE_ABSMAX),
			     cw_baseline_row_value(b, side, CW_BASELINE_ABSMAX));
	double rtol = t->rtol + OWN, root = sqrt(n > 1 ? n : 1);

	if (value == CW_BASELINE_ABSMAX)
		return t->atol + rtol * absmax;
	if (value == CW_BASELINE_L2)
		return t->atol * root + rtol * l2;
	/* If the norm is out of range, we use absmax. */
	return t->atol + rtol * (isfinite(l2) ? l2 / root : absmax);
}

static bool is_side_close(const struct cw_baseline_row *a, const struct cw_baseline_row *b,
			  enum cw_baseline_side side, double n,
			  const struct cw_baseline_tolerance *t, struct cw_baseline_difference *ret)
{
	if (a->nonfinite[side] != b->nonfinite[side]) {
		ret->what = CW_BASELINE_NONFINITE;
		ret->a = a->nonfinite[side];
		ret->b = b->nonfinite[side];
		return false;
	}
	if (memcmp(a->values[side], b->values[side], sizeof(a->values[side])) == 0)
		return true;
	for (enum cw_baseline_value v = 0; v < CW_BASELINE_VALUES; v++) {
		double x = cw_baseline_row_value(a, side, v), y = cw_baseline_row_value(b, side, v);
		double allowed = allowed_of(a, b, side, v, n, t);

		/* NaN means that the value is out of a double's range, on one side or on both. */
		if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= allowed)
			continue;
		*ret = (struct cw_baseline_difference){ .what = CW_BASELINE_TENSOR_STATS,
							.side = side,
							.value = v,
							.a = x,
							.b = y,
							.allowed = allowed };
		return false;
	}
	return true;
}

bool cw_baseline_close(const struct cw_baseline_row *a, const struct cw_baseline_row *b,
		       uint32_t nranks, const struct cw_baseline_options *options,
		       struct cw_baseline_difference *ret)
{
	static const struct cw_baseline_tolerance exact = { 0 };
	const struct cw_baseline_tolerance *t =
		a->dtype < CW_DTYPE__MAX ? &options->of[a->dtype] : &exact;

	*ret = (struct cw_baseline_difference){ .what = CW_BASELINE_EQUAL };
	for (enum cw_baseline_side side = 0; side < CW_BASELINE_SIDES; side++) {
		if (!cw_baseline_row_has(a, side) || !cw_baseline_row_has(b, side))
			continue;
		ret->side = side;
		if (!is_side_close(a, b, side, elements(a, side, nranks, options->are_groups), t,
				   ret))
			return false;
	}
	return true;
}
