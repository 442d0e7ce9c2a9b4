/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/summary_growth.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>

#include "model/op.h"

static struct cw_growth growth;

static struct cw_rec_summary summary(double abs_max, uint32_t step)
{
	return (struct cw_rec_summary){ .publish = 1,
					.kind = CW_OP_ALL_REDUCE,
					.dtype = CW_DTYPE_FP16,
					.offered = 10,
					.elements = 10,
					.step_plus_1 = step + 1,
					.abs_max = abs_max };
}

static bool take(double abs_max, uint32_t step)
{
	struct cw_rec_summary s = summary(abs_max, step);

	return cw_growth_is_leaving(&growth, &s);
}

struct pace {
	double factor, limit;
	uint8_t dtype;
};

ParameterizedTestParameters(summary_growth, stops_at_least_a_step_before_it_overflows)
{
	static struct pace paces[] = {
		{ 1.05, 65504, CW_DTYPE_FP16 },
		{ 1.5, 65504, CW_DTYPE_FP16 },
		{ 1.9, 448, CW_DTYPE_FP8_E4M3 },
		{ 3, 57344, CW_DTYPE_FP8_E5M2 },
		{ 64, 0x1.fffffep127, CW_DTYPE_FP32 },
		{ 1.3, 0x1.fep127, CW_DTYPE_BF16 },
		{ 1000, 0x1.fffffffffffffp1023, CW_DTYPE_FP64 },
	};

	return cr_make_param_array(struct pace, paces, sizeof(paces) / sizeof(paces[0]));
}

/* From so far below the end that the ninth step is the first which may say so. */
ParameterizedTest(struct pace *p, summary_growth, stops_at_least_a_step_before_it_overflows)
{
	int left_at = 0, seen_at = 0, step = 0;

	for (double v = p->limit / pow(p->factor, 12.5); !left_at; v *= p->factor, step++) {
		struct cw_rec_summary s = summary(v, (uint32_t)step);

		s.dtype = p->dtype;
		if (v > p->limit)
			left_at = step;
		else if (cw_growth_is_leaving(&growth, &s) && !seen_at)
			seen_at = step;
	}
	cr_assert_eq(left_at, 13);
	cr_assert(seen_at == left_at - 1 || seen_at == left_at - 2 || seen_at == left_at - 3,
		  "of %d at %d", left_at, seen_at);
}

Test(summary_growth, far_from_the_end_growth_is_no_matter)
{
	double v = 1e-3;

	for (uint32_t step = 0; step < 12; step++, v *= 1.5)
		cr_assert_not(take(v, step));
}

Test(summary_growth, a_scale_that_doubles_is_no_growth)
{
	for (uint32_t step = 0; step < 60; step++)
		cr_assert_not(take(step < 30 ? 16000 : 32000 + step % 3, step));
	cr_assert_not(take(64000, 60));
}

Test(summary_growth, a_jump_after_slow_growth_is_no_pace)
{
	double v = 1000;

	for (uint32_t step = 0; step < 7; step++, v *= 1.01)
		cr_assert_not(take(v, step));
	cr_assert_not(take(60000, 7));
}

/* Two buckets of one size; one grows. */
Test(summary_growth, calls_of_a_step_are_told_apart)
{
	double v = 2000;
	bool is_leaving = false;

	for (uint32_t step = 0; v < 65504; step++, v *= 1.5) {
		cr_assert_not(take(100 - step, step));
		is_leaving |= take(v, step);
	}
	cr_assert(is_leaving);
}

Test(summary_growth, what_cannot_be_followed_is_omitted)
{
	for (uint32_t i = 0; i <= CW_GROWTH_SERIES; i++)
		for (uint32_t step = 0; step < 2; step++) {
			struct cw_rec_summary s = summary(60000, step);

			s.offered = i + 1;
			cr_assert_not(cw_growth_is_leaving(&growth, &s));
		}
	cr_assert(growth.is_full);
	cr_assert_eq(growth.n, CW_GROWTH_SERIES);
}

Test(summary_growth, integers_have_no_end_to_leave)
{
	struct cw_rec_summary s = summary(100, 0);

	s.dtype = CW_DTYPE_INT8;
	cr_assert_not(cw_growth_is_leaving(&growth, &s));
	cr_assert_eq(growth.n, 0);
}
