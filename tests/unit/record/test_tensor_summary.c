/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a tensor, against values worked out in another way. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/op.h"
#include "record/summary.h"

static struct cw_rec_summary sum_of(const void *data, uint64_t n, unsigned dtype)
{
	struct cw_summary_args args = {
		.data = (uint64_t)(uintptr_t)data,
		.elements = n,
		.dtype = (uint8_t)dtype,
		.stride_words = CW_SUM_CHUNK_WORDS,
	};
	struct cw_rec_summary s = { 0 };

	cw_summary_compute(&args, &s);
	return s;
}

/* Any small float format by its definition, with the library's arithmetic. */
static double value_of(unsigned bits, int exponent_bits, int mantissa_bits, bool has_inf)
{
	int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
	int e = (int)(bits >> mantissa_bits) & top;
	int m = (int)bits & ((1 << mantissa_bits) - 1);
	double sign = bits >> (exponent_bits + mantissa_bits) ? -1 : 1;

	if (has_inf && e == top)
		return m ? NAN : sign * INFINITY;
	if (!has_inf && e == top && m == (1 << mantissa_bits) - 1)
		return NAN;
	if (e == 0)
		return sign * ldexp(m, 1 - bias - mantissa_bits);
	return sign * ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits);
}

static void check_value(const struct cw_rec_summary *s, double v, unsigned bits)
{
	cr_assert_eq(s->elements, 1);
	cr_assert_eq(s->nans, isnan(v) ? 1 : 0, "bits 0x%x", bits);
	cr_assert_eq(s->infs, isinf(v) ? 1 : 0, "bits 0x%x", bits);
	cr_assert_eq(s->zeros, v == 0 ? 1 : 0, "bits 0x%x", bits);
	if (!isfinite(v))
		v = 0;
	cr_assert_eq(s->abs_max, fabs(v), "bits 0x%x: %g, not %g", bits, s->abs_max, fabs(v));
	cr_assert_eq(s->abs_min_nonzero, fabs(v));
	cr_assert_eq(s->mean, v);
}

Test(tensor_summary, reads_every_number_of_the_small_formats)
{
	for (unsigned bits = 0; bits < 256; bits++) {
		uint8_t b = (uint8_t)bits;
		struct cw_rec_summary s = sum_of(&b, 1, CW_DTYPE_FP8_E4M3);

		check_value(&s, value_of(bits, 4, 3, false), bits);
		s = sum_of(&b, 1, CW_DTYPE_FP8_E5M2);
		check_value(&s, value_of(bits, 5, 2, true), bits);
	}
	for (unsigned bits = 0; bits < 65536; bits++) {
		uint16_t h = (uint16_t)bits;
		struct cw_rec_summary s = sum_of(&h, 1, CW_DTYPE_FP16);

		check_value(&s, value_of(bits, 5, 10, true), bits);
		s = sum_of(&h, 1, CW_DTYPE_BF16);
		check_value(&s, value_of(bits, 8, 7, true), bits);
	}
}

Test(tensor_summary, reads_floats_and_doubles)
{
	const float f[] = { 0, -0.0f, 1.5f, -3, NAN, INFINITY, -INFINITY, 1e-45f };
	const double d[] = { 2, -1e-310, NAN, INFINITY, 0 };
	struct cw_rec_summary s = sum_of(f, 8, CW_DTYPE_FP32);

	cr_assert(s.elements == 8 && s.nans == 1 && s.infs == 2 && s.zeros == 2);
	cr_assert(s.abs_max == 3 && s.abs_min_nonzero == (double)1e-45f);
	cr_assert_float_eq(s.mean, -1.5 / 5, 1e-12);
	cr_assert_float_eq(s.l2, sqrt(1.5 * 1.5 + 9), 1e-12);
	s = sum_of(d, 5, CW_DTYPE_FP64);
	cr_assert(s.elements == 5 && s.nans == 1 && s.infs == 1 && s.zeros == 1);
	cr_assert(s.abs_max == 2 && s.abs_min_nonzero == 1e-310);
}

Test(tensor_summary, reads_integers_of_all_widths)
{
	const int8_t i8[] = { -128, 127, 0 };
	const uint8_t u8[] = { 255, 1 };
	const int32_t i32[] = { INT32_MIN, 5 };
	const uint32_t u32[] = { UINT32_MAX };
	const int64_t i64[] = { INT64_MIN, 0 };
	const uint64_t u64[] = { UINT64_MAX };
	struct cw_rec_summary s = sum_of(i8, 3, CW_DTYPE_INT8);

	cr_assert(s.abs_max == 128 && s.abs_min_nonzero == 127 && s.zeros == 1);
	cr_assert_float_eq(s.mean, -1.0 / 3, 1e-15);
	s = sum_of(u8, 2, CW_DTYPE_UINT8);
	cr_assert(s.abs_max == 255 && s.mean == 128);
	s = sum_of(i32, 2, CW_DTYPE_INT32);
	cr_assert(s.abs_max == 2147483648.0 && s.abs_min_nonzero == 5);
	s = sum_of(u32, 1, CW_DTYPE_UINT32);
	cr_assert_eq(s.abs_max, 4294967295.0);
	s = sum_of(i64, 2, CW_DTYPE_INT64);
	cr_assert(s.abs_max == 9223372036854775808.0 && s.mean == -4611686018427387904.0);
	s = sum_of(u64, 1, CW_DTYPE_UINT64);
	cr_assert_eq(s.abs_max, 18446744073709551616.0);
	cr_assert_eq(s.nans + s.infs, 0);
}

Test(tensor_summary, checksum_sees_every_bit_and_its_place)
{
	uint8_t data[67], copy[68];
	uint64_t sum;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37);
	sum = sum_of(data, sizeof(data), CW_DTYPE_UINT8).checksum;
	memcpy(copy + 1, data, sizeof(data));
	cr_assert_eq(sum_of(copy + 1, sizeof(data), CW_DTYPE_UINT8).checksum, sum,
		     "not of where it lies");
	for (unsigned i = 0; i < sizeof(data) * 8; i++) {
		data[i / 8] ^= (uint8_t)(1 << i % 8);
		cr_assert_neq(sum_of(data, sizeof(data), CW_DTYPE_UINT8).checksum, sum);
		data[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	memcpy(copy, data + 8, 8);
	memcpy(copy + 8, data, 8);
	cr_assert_neq(sum_of(copy, 16, CW_DTYPE_UINT8).checksum,
		      sum_of(data, 16, CW_DTYPE_UINT8).checksum, "two words changed places");
}

Test(tensor_summary, share_looks_at_chunks_over_the_whole_tensor)
{
	const uint64_t n = 100000;
	uint16_t *data = calloc(n, sizeof(*data));
	struct cw_summary_args args = {
		.data = (uint64_t)(uintptr_t)data,
		.elements = n,
		.dtype = CW_DTYPE_BF16,
		.stride_words = CW_SUM_CHUNK_WORDS * 5,
	};
	struct cw_rec_summary s;

	cr_assert_not_null(data);
	for (uint64_t i = 0; i < n; i++)
		data[i] = i / 4 % (512 * 5) < 512 ? 0 : 0x7fc0; /* NaN outside the sample */
	cw_summary_compute(&args, &s);
	cr_assert_eq(s.nans, 0);
	cr_assert_eq(s.elements, (25000 / 2560 * 512 + 512) * 4);
	cr_assert_eq(s.zeros, s.elements);
	data[4 * 2560 * 9] = 0x7f80;
	cw_summary_compute(&args, &s);
	cr_assert_eq(s.infs, 1, "the last chunk as well");
	free(data);
}

/* For each share, and from each first chunk: exactly one of them looks at each word. */
Test(tensor_summary, shares_from_all_places_make_the_whole)
{
	static const uint64_t sizes[] = { 1, 511, 512, 513, 5000, 12345 };
	const unsigned strides[] = { 1, 2, 4, 8 };
	uint64_t data[12345];

	for (size_t i = 0; i < 12345; i++)
		data[i] = i * 7;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++) {
		struct cw_rec_summary whole = sum_of(data, sizes[n], CW_DTYPE_UINT64);

		for (size_t k = 0; k < 4; k++) {
			uint64_t elements = 0, checksum = 0, zeros = 0;

			for (uint64_t first = 0; first < strides[k]; first++) {
				struct cw_summary_args args = {
					.data = (uint64_t)(uintptr_t)data,
					.elements = sizes[n],
					.dtype = CW_DTYPE_UINT64,
					.stride_words = CW_SUM_CHUNK_WORDS * strides[k],
					.first_word = CW_SUM_CHUNK_WORDS * first,
				};
				struct cw_rec_summary s = { 0 };

				cw_summary_compute(&args, &s);
				elements += s.elements;
				checksum += s.checksum;
				zeros += s.zeros;
			}
			cr_assert_eq(elements, whole.elements);
			cr_assert_eq(checksum, whole.checksum);
			cr_assert_eq(zeros, whole.zeros);
		}
	}
}

Test(tensor_summary, keeps_the_first_with_nan_or_infinity)
{
	struct cw_rec_summary out = { 0 }, first = { 0 };
	float data[3] = { 1, 2, 3 };
	struct cw_summary_args args = {
		.data = (uint64_t)(uintptr_t)data,
		.elements = 3,
		.offered = 3,
		.dtype = CW_DTYPE_FP32,
		.stride_words = CW_SUM_CHUNK_WORDS,
		.out = (uint64_t)(uintptr_t)&out,
		.first_out = (uint64_t)(uintptr_t)&first,
		.publish = 1,
		.op_index = 10,
	};

	cw_summary_run(&args);
	cr_assert(out.publish == 1 && out.op_index == 10 && first.publish == 0);
	data[1] = NAN;
	args.publish = 2;
	args.op_index = 11;
	cw_summary_run(&args);
	cr_assert(first.publish == 2 && first.op_index == 11 && first.nans == 1);
	data[2] = INFINITY;
	args.publish = 3;
	args.op_index = 12;
	cw_summary_run(&args);
	cr_assert(out.publish == 3 && out.infs == 1);
	cr_assert_eq(first.op_index, 11, "it stays the first");
}
