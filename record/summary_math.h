/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of tensor summaries, once for the CPU and once for the GPU: this header is
 * compiled as C into the reference and as CUDA into the kernel. So it has no library calls and no
 * types that one of the two lacks.
 *
 * A buffer is read as little-endian 64-bit words from its beginning, the last one filled up with
 * zeros. The checksum is the sum of mixed words, each mixed with its position: the same in whatever
 * order the words are added. Sums of doubles are not: mean and L2 norm of two runs may differ in
 * the last digits (1e-12 times the square root of the number of elements, of the mean of the
 * absolute values and of the norm).
 */
#pragma once

#include <stdint.h>

#ifndef CW_SUMMARY_FN
#define CW_SUMMARY_FN static inline
#endif

/* What one launch is asked for; passed to the kernel by value. */
struct cw_summary_args {
	uint64_t data;         /* address on the device */
	uint64_t elements;     /* from there on */
	uint64_t offered;      /* elements of the whole tensor: only told on */
	uint64_t chunk_words;  /* looks at so many words … */
	uint64_t stride_words; /* … of so many, a multiple of that … */
	uint64_t first_word;   /* … from here on: such a multiple, below stride_words */
	uint64_t out;          /* struct cw_rec_summary */
	uint64_t first_out;    /* the same, for the first with NaN or infinity; 0 = not wanted */
	uint64_t publish;
	uint64_t op_index, seq;
	uint32_t comm, comm_generation;
	uint32_t slot; /* which of the kernel's scratch areas */
	uint32_t step_plus_1;
	uint8_t kind, dtype, is_output, stride_log2_plus_1; /* told on */
	uint32_t reserved;
};

struct cw_summary_sum {
	uint64_t elements, nans, infs, zeros, checksum;
	uint64_t at_limit, denormals;
	double abs_max, abs_min, total, squares; /* abs_min: 0 = none yet */
};

enum cw_number_class { CW_NUMBER_FINITE, CW_NUMBER_NAN, CW_NUMBER_INF };

/* The numbers of enum cw_dtype (model/op.h), which kernels cannot include. */
enum {
	CW_SUM_INT8,
	CW_SUM_UINT8,
	CW_SUM_INT32,
	CW_SUM_UINT32,
	CW_SUM_INT64,
	CW_SUM_UINT64,
	CW_SUM_FP16,
	CW_SUM_FP32,
	CW_SUM_FP64,
	CW_SUM_BF16,
	CW_SUM_E4M3,
	CW_SUM_E5M2,
	CW_SUM__MAX,
};

CW_SUMMARY_FN uint64_t cw_sum_mix(uint64_t word, uint64_t position)
{
	uint64_t x = word ^ ((position + 1) * UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

CW_SUMMARY_FN unsigned cw_sum_bytes(unsigned dtype)
{
	switch (dtype) {
	case CW_SUM_INT8:
	case CW_SUM_UINT8:
	case CW_SUM_E4M3:
	case CW_SUM_E5M2:
		return 1;
	case CW_SUM_FP16:
	case CW_SUM_BF16:
		return 2;
	case CW_SUM_INT32:
	case CW_SUM_UINT32:
	case CW_SUM_FP32:
		return 4;
	default:
		return 8;
	}
}

CW_SUMMARY_FN float cw_sum_float(uint32_t bits)
{
	union {
		uint32_t bits;
		float f;
	} u;

	u.bits = bits;
	return u.f;
}

CW_SUMMARY_FN double cw_sum_double(uint64_t bits)
{
	union {
		uint64_t bits;
		double f;
	} u;

	u.bits = bits;
	return u.f;
}

/* IEEE single; *ret_abs is the absolute value. */
CW_SUMMARY_FN enum cw_number_class cw_sum_fp32(uint32_t bits, double *ret)
{
	if ((bits & 0x7f800000u) == 0x7f800000u)
		return bits & 0x7fffffu ? CW_NUMBER_NAN : CW_NUMBER_INF;
	*ret = (double)cw_sum_float(bits);
	return CW_NUMBER_FINITE;
}

CW_SUMMARY_FN enum cw_number_class cw_sum_fp64(uint64_t bits, double *ret)
{
	const uint64_t exponent = UINT64_C(0x7ff0000000000000);

	if ((bits & exponent) == exponent)
		return bits << 12 ? CW_NUMBER_NAN : CW_NUMBER_INF;
	*ret = cw_sum_double(bits);
	return CW_NUMBER_FINITE;
}

/* A small IEEE format, by its widths: value = mantissa * 2^scale, exact in double. */
CW_SUMMARY_FN double cw_sum_small(uint32_t magnitude, unsigned mantissa_bits, unsigned bias,
				  uint32_t negative)
{
	uint32_t exponent = magnitude >> mantissa_bits;
	uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
	double v;

	if (exponent)
		mantissa |= 1u << mantissa_bits;
	else
		exponent = 1;
	/* 2^(exponent - bias - mantissa_bits), put together as the bits of a double */
	v = cw_sum_double((uint64_t)(1023 + exponent - bias - mantissa_bits) << 52) *
	    (double)mantissa;
	return negative ? -v : v;
}

CW_SUMMARY_FN enum cw_number_class cw_sum_fp16(uint32_t bits, double *ret)
{
	uint32_t magnitude = bits & 0x7fffu;

	if (magnitude >= 0x7c00u)
		return magnitude > 0x7c00u ? CW_NUMBER_NAN : CW_NUMBER_INF;
	*ret = cw_sum_small(magnitude, 10, 15, bits & 0x8000u);
	return CW_NUMBER_FINITE;
}

/* E4M3 as NCCL and PyTorch have it ("fn"): no infinity, one NaN of each sign. */
CW_SUMMARY_FN enum cw_number_class cw_sum_e4m3(uint32_t bits, double *ret)
{
	uint32_t magnitude = bits & 0x7fu;

	if (magnitude == 0x7fu)
		return CW_NUMBER_NAN;
	*ret = cw_sum_small(magnitude, 3, 7, bits & 0x80u);
	return CW_NUMBER_FINITE;
}

/* One element, in the lowest bits of word. E5M2 is the upper half of an fp16. */
CW_SUMMARY_FN enum cw_number_class cw_sum_number(uint64_t word, unsigned dtype, double *ret)
{
	switch (dtype) {
	case CW_SUM_FP16:
		return cw_sum_fp16((uint32_t)word & 0xffffu, ret);
	case CW_SUM_E5M2:
		return cw_sum_fp16(((uint32_t)word & 0xffu) << 8, ret);
	case CW_SUM_E4M3:
		return cw_sum_e4m3((uint32_t)word & 0xffu, ret);
	case CW_SUM_BF16:
		return cw_sum_fp32((uint32_t)word << 16, ret);
	case CW_SUM_FP32:
		return cw_sum_fp32((uint32_t)word, ret);
	case CW_SUM_FP64:
		return cw_sum_fp64(word, ret);
	case CW_SUM_INT8:
		*ret = (double)(int8_t)word;
		return CW_NUMBER_FINITE;
	case CW_SUM_UINT8:
		*ret = (double)(uint8_t)word;
		return CW_NUMBER_FINITE;
	case CW_SUM_INT32:
		*ret = (double)(int32_t)word;
		return CW_NUMBER_FINITE;
	case CW_SUM_UINT32:
		*ret = (double)(uint32_t)word;
		return CW_NUMBER_FINITE;
	case CW_SUM_INT64:
		*ret = (double)(int64_t)word;
		return CW_NUMBER_FINITE;
	default:
		*ret = (double)word;
		return CW_NUMBER_FINITE;
	}
}

/* The largest finite magnitude; 0 = of integers, which have no infinity to come near to. */
CW_SUMMARY_FN double cw_sum_limit(unsigned dtype)
{
	switch (dtype) {
	case CW_SUM_FP16:
		return 65504;
	case CW_SUM_FP32:
		return 0x1.fffffep127;
	case CW_SUM_FP64:
		return 0x1.fffffffffffffp1023;
	case CW_SUM_BF16:
		return 0x1.fep127;
	case CW_SUM_E4M3:
		return 448;
	case CW_SUM_E5M2:
		return 57344;
	default:
		return 0;
	}
}

/* The smallest number that is not denormal; 0 = of integers. */
CW_SUMMARY_FN double cw_sum_least_normal(unsigned dtype)
{
	switch (dtype) {
	case CW_SUM_FP16:
	case CW_SUM_E5M2:
		return 0x1p-14;
	case CW_SUM_FP32:
	case CW_SUM_BF16:
		return 0x1p-126;
	case CW_SUM_FP64:
		return 0x1p-1022;
	case CW_SUM_E4M3:
		return 0x1p-6;
	default:
		return 0;
	}
}

CW_SUMMARY_FN void cw_sum_add_number(struct cw_summary_sum *s, uint64_t bits, unsigned dtype)
{
	double v = 0, a;

	switch (cw_sum_number(bits, dtype, &v)) {
	case CW_NUMBER_NAN:
		s->nans++;
		return;
	case CW_NUMBER_INF:
		s->infs++;
		return;
	case CW_NUMBER_FINITE:
		break;
	}
	if (v == 0) {
		s->zeros++;
		return;
	}
	a = v < 0 ? -v : v;
	if (a > s->abs_max)
		s->abs_max = a;
	if (s->abs_min == 0 || a < s->abs_min)
		s->abs_min = a;
	s->at_limit += a == cw_sum_limit(dtype);
	s->denormals += a < cw_sum_least_normal(dtype);
	s->total += v;
	s->squares += a * a;
}

/* A word of the buffer that holds n elements; its unused bytes are 0. */
CW_SUMMARY_FN void cw_sum_add_word(struct cw_summary_sum *s, uint64_t word, uint64_t position,
				   unsigned dtype, unsigned n)
{
	unsigned bits = cw_sum_bytes(dtype) * 8;

	s->checksum += cw_sum_mix(word, position);
	s->elements += n;
	for (unsigned i = 0; i < n; i++)
		cw_sum_add_number(s, word >> (i * bits), dtype);
}

CW_SUMMARY_FN void cw_sum_join(struct cw_summary_sum *to, const struct cw_summary_sum *from)
{
	to->elements += from->elements;
	to->nans += from->nans;
	to->infs += from->infs;
	to->zeros += from->zeros;
	to->checksum += from->checksum;
	to->at_limit += from->at_limit;
	to->denormals += from->denormals;
	if (from->abs_max > to->abs_max)
		to->abs_max = from->abs_max;
	if (from->abs_min != 0 && (to->abs_min == 0 || from->abs_min < to->abs_min))
		to->abs_min = from->abs_min;
	to->total += from->total;
	to->squares += from->squares;
}

/* Below it squares lose digits, and then all of them: 2^-500. */
#define CW_SUM_SQUARES_FROM 0x1p-500

/* NaN for what has left the range of a double. */
CW_SUMMARY_FN double cw_sum_in_range(double v)
{
	return v - v == 0 ? v : cw_sum_double(UINT64_C(0x7ff8000000000000));
}

/* Of the finite numbers. Only fp64 has any whose sum no double holds: the mean is then NaN. */
CW_SUMMARY_FN double cw_sum_mean(const struct cw_summary_sum *s)
{
	uint64_t finite = s->elements - s->nans - s->infs;

	return finite ? cw_sum_in_range(s->total / (double)finite) : 0;
}

/* The square of the L2 norm; NaN, with fp64 alone, where that is too large or too small. */
CW_SUMMARY_FN double cw_sum_squares(const struct cw_summary_sum *s)
{
	if (s->abs_max != 0 && s->abs_max < CW_SUM_SQUARES_FROM)
		return cw_sum_double(UINT64_C(0x7ff8000000000000));
	return cw_sum_in_range(s->squares);
}

/* n of so many, as cw_rec_summary has shares. */
CW_SUMMARY_FN uint16_t cw_sum_share(uint64_t n, uint64_t elements)
{
	union {
		uint32_t bits;
		float f;
	} u;

	u.f = elements ? (float)((double)n / (double)elements) : 0;
	return (uint16_t)(u.bits >> 16);
}

/* Words of the buffer, the last one perhaps not full. */
CW_SUMMARY_FN uint64_t cw_sum_words(const struct cw_summary_args *args)
{
	unsigned per_word = 8 / cw_sum_bytes(args->dtype);

	return (args->elements + per_word - 1) / per_word;
}

/* How many words are looked at, and the position of the i-th of them. */
CW_SUMMARY_FN uint64_t cw_sum_chosen(const struct cw_summary_args *args)
{
	uint64_t words = cw_sum_words(args), rest;

	rest = words % args->stride_words;
	rest = rest > args->first_word ? rest - args->first_word : 0;
	if (rest > args->chunk_words)
		rest = args->chunk_words;
	return words / args->stride_words * args->chunk_words + rest;
}

CW_SUMMARY_FN uint64_t cw_sum_position(const struct cw_summary_args *args, uint64_t i)
{
	if (args->chunk_words == args->stride_words)
		return i;
	return i / args->chunk_words * args->stride_words + args->first_word +
	       i % args->chunk_words;
}

/* Elements in the word at a position. */
CW_SUMMARY_FN unsigned cw_sum_in_word(const struct cw_summary_args *args, uint64_t position)
{
	unsigned per_word = 8 / cw_sum_bytes(args->dtype);
	uint64_t left = args->elements - position * per_word;

	return left < per_word ? (unsigned)left : per_word;
}
