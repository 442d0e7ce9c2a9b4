/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of tensor summaries for the CPU and the GPU. We compile this header as C into the
 * reference and as CUDA into the kernel. It therefore uses no library calls, and only types that
 * both have.
 *
 * We read a buffer as little-endian 64-bit words and fill up the last word with zeros. The checksum
 * is the sum of all words, each mixed with its position, so the order of the additions does not
 * matter. For sums of doubles the order does matter. Mean and L2 norm of two runs may therefore
 * differ by 1e-12 times the square root of the number of elements. This difference is relative to
 * the mean of the absolute values and to the norm.
 */
#pragma once

#include <stdint.h>

#ifndef CW_SUMMARY_FN
#define CW_SUMMARY_FN static inline
#endif

/* Number of threads per block, a power of two, and largest number of blocks of a launch. */
#define CW_SUM_THREADS 256
#define CW_SUM_BLOCKS 512

/*
 * Number of streams on which programs may request statistics. The scratch areas of these streams
 * follow those of the ring's entries.
 */
#define CW_SUM_STREAMS 16

#define CW_SUM_CHUNK_WORDS 512u /* 4 KiB; the gaps between such chunks cost no bandwidth */

/* The arguments of one launch; passed to the kernel by value. */
struct cw_summary_args {
	uint64_t data;     /* address on the device */
	uint64_t elements; /* number of elements at `data` */
	/* Elements of the whole tensor. The kernel only copies this number to the output. */
	uint64_t offered;
	uint64_t stride_words; /* the kernel reads one chunk of each stretch of this many words; a
				  multiple of CW_SUM_CHUNK_WORDS */
	uint64_t first_word; /* offset of the chunk in its stretch; a multiple of CW_SUM_CHUNK_WORDS
				below stride_words */
	uint64_t out;        /* address of a struct cw_rec_summary */
	uint64_t first_out;  /* address of another summary, for the first tensor with NaN or
				infinity; 0 = not wanted */
	uint64_t tensor_stats; /* address of a struct cw_sum_tensor_stats, which replaces out and
				  first_out; 0 = not wanted */
	uint64_t publish;
	uint64_t op_index, seq;
	uint32_t comm, comm_generation;
	uint32_t slot; /* index of the kernel's scratch area */
	uint32_t step_plus_1;
	uint8_t kind, dtype, is_output, stride_log2_plus_1; /* copied to the output */
	uint32_t reserved;
};

/*
 * Statistics of a tensor for the program itself (agent/cuda/tensor_stats.h).
 *
 * low and high are NaN if the tensor has a NaN. Without a NaN, low is -infinity or high is infinity
 * if the tensor has an infinity of this sign. Otherwise they are the largest magnitude, negated in
 * low. least is the smallest non-zero finite magnitude, or infinity if there is none.
 */
struct cw_sum_tensor_stats {
	double low, high, least, mean, norm;
};

/*
 * Running totals of a tensor. A magnitude is a number without its sign. We store the bits of the
 * number for a floating-point type, and the value for an integer type.
 */
struct cw_summary_sum {
	uint64_t elements, nans, infs, zeros, checksum;
	uint64_t negative_infs; /* how many of infs are negative */
	uint64_t at_limit, denormals;
	uint64_t most, least; /* magnitudes; least 0 = none yet */
	double total, squares;
};

/* The values equal those of enum cw_dtype (model/op.h), which kernels cannot include. */
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

CW_SUMMARY_FN unsigned cw_sum_mantissa_bits(unsigned dtype)
{
	switch (dtype) {
	case CW_SUM_FP16:
		return 10;
	case CW_SUM_FP32:
		return 23;
	case CW_SUM_FP64:
		return 52;
	case CW_SUM_BF16:
		return 7;
	case CW_SUM_E4M3:
		return 3;
	case CW_SUM_E5M2:
		return 2;
	default:
		return 0;
	}
}

/*
 * Returns the smallest magnitude that is not finite: infinity. NaNs have larger magnitudes. E4M3 as
 * in NCCL and PyTorch ("fn") has no infinity, but one NaN of each sign. Returns 0 for integers,
 * which are always finite.
 */
CW_SUMMARY_FN uint64_t cw_sum_special(unsigned dtype)
{
	switch (dtype) {
	case CW_SUM_FP16:
		return 0x7c00;
	case CW_SUM_FP32:
		return 0x7f800000;
	case CW_SUM_FP64:
		return UINT64_C(0x7ff0000000000000);
	case CW_SUM_BF16:
		return 0x7f80;
	case CW_SUM_E4M3:
		return 0x7f;
	case CW_SUM_E5M2:
		return 0x7c;
	default:
		return 0;
	}
}

/* Returns the exponent bits of the number 1: 127 for fp32 and bf16. */
CW_SUMMARY_FN unsigned cw_sum_bias(unsigned dtype)
{
	switch (dtype) {
	case CW_SUM_FP16:
	case CW_SUM_E5M2:
		return 15;
	case CW_SUM_E4M3:
		return 7;
	default:
		return 127;
	}
}

/*
 * Returns the magnitude of an element of four bytes or less. The upper bits of the result are
 * zeros.
 */
CW_SUMMARY_FN uint32_t cw_sum_magnitude(uint32_t bits, unsigned dtype)
{
	switch (dtype) {
	case CW_SUM_INT8:
		return bits & 0x80u ? 0x100u - bits : bits;
	case CW_SUM_INT32:
		return bits & 0x80000000u ? 0 - bits : bits;
	case CW_SUM_UINT8:
	case CW_SUM_UINT32:
		return bits;
	default:
		return bits & ~(1u << (cw_sum_bytes(dtype) * 8 - 1));
	}
}

/*
 * Returns the value of a finite element that is not a denormal float. A double has the bits of the
 * element in higher positions.
 */
CW_SUMMARY_FN double cw_sum_normal(uint32_t bits, uint32_t magnitude, unsigned dtype)
{
	unsigned width = cw_sum_bytes(dtype) * 8, mantissa = cw_sum_mantissa_bits(dtype);
	uint64_t exponent = (uint64_t)(1023 - cw_sum_bias(dtype)) << 52;

	if (dtype == CW_SUM_INT8)
		return (double)(int8_t)bits;
	if (dtype == CW_SUM_INT32)
		return (double)(int32_t)bits;
	if (!mantissa)
		return (double)bits;
	return cw_sum_double((((uint64_t)magnitude << (52 - mantissa)) + exponent) |
			     (uint64_t)(bits >> (width - 1)) << 63);
}

/* Returns the value of any finite element, including denormal floats. */
CW_SUMMARY_FN double cw_sum_value(uint32_t bits, uint32_t magnitude, unsigned dtype)
{
	unsigned mantissa = cw_sum_mantissa_bits(dtype);
	double unit, v;

	if (!mantissa || magnitude >> mantissa)
		return cw_sum_normal(bits, magnitude, dtype);
	unit = cw_sum_double((uint64_t)(1024 - cw_sum_bias(dtype) - mantissa) << 52);
	v = unit * (double)magnitude;
	return bits == magnitude ? v : -v;
}

/* Returns the magnitude of an element of eight bytes: fp64 or a 64-bit integer. */
CW_SUMMARY_FN uint64_t cw_sum_magnitude64(uint64_t bits, unsigned dtype)
{
	if (dtype == CW_SUM_FP64)
		return bits << 1 >> 1;
	return dtype == CW_SUM_INT64 && bits >> 63 ? 0 - bits : bits;
}

CW_SUMMARY_FN double cw_sum_value64(uint64_t bits, unsigned dtype)
{
	if (dtype == CW_SUM_FP64)
		return cw_sum_double(bits);
	return dtype == CW_SUM_INT64 ? (double)(int64_t)bits : (double)bits;
}

CW_SUMMARY_FN double cw_sum_of_magnitude(uint64_t magnitude, unsigned dtype)
{
	if (!cw_sum_mantissa_bits(dtype))
		return (double)magnitude;
	return dtype == CW_SUM_FP64 ? cw_sum_double(magnitude)
				    : cw_sum_value((uint32_t)magnitude, (uint32_t)magnitude, dtype);
}

/* Counts an element that is not ordinary. Returns whether it is finite. */
CW_SUMMARY_FN int cw_sum_note(struct cw_summary_sum *s, uint64_t bits, uint64_t magnitude,
			      unsigned dtype)
{
	uint64_t special = cw_sum_special(dtype);

	s->zeros += magnitude == 0;
	if (!special)
		return 1;
	if (magnitude >= special) {
		if (magnitude == special && dtype != CW_SUM_E4M3) {
			s->infs++;
			s->negative_infs += bits != magnitude;
		} else {
			s->nans++;
		}
		return 0;
	}
	s->at_limit += magnitude == special - 1;
	s->denormals += magnitude != 0 && magnitude >> cw_sum_mantissa_bits(dtype) == 0;
	return 1;
}

/*
 * Returns whether the number is ordinary: not zero, not denormal, not the largest, not infinite and
 * not NaN. Nearly all numbers are ordinary. One comparison suffices, because an unsigned difference
 * below zero is a large number.
 */
CW_SUMMARY_FN int cw_sum_is_ordinary(uint32_t magnitude, unsigned dtype)
{
	uint32_t normal = 1u << (cw_sum_mantissa_bits(dtype) % 32);
	uint32_t special = (uint32_t)cw_sum_special(dtype);

	return special ? magnitude - normal < special - 1 - normal : magnitude != 0;
}

/*
 * Adds a range of magnitudes. before_least is the smallest magnitude minus 1. Magnitude 0, which
 * stands for "none", thereby becomes the largest number.
 */
CW_SUMMARY_FN void cw_sum_add_range(struct cw_summary_sum *s, uint64_t most, uint64_t before_least)
{
	if (most > s->most)
		s->most = most;
	if (before_least < s->least - 1)
		s->least = before_least + 1;
}

CW_SUMMARY_FN void cw_sum_add_number64(struct cw_summary_sum *s, uint64_t bits, unsigned dtype)
{
	uint64_t magnitude = cw_sum_magnitude64(bits, dtype);
	double v = cw_sum_value64(bits, dtype);

	if (!cw_sum_note(s, bits, magnitude, dtype))
		return;
	cw_sum_add_range(s, magnitude, magnitude - 1);
	s->total += v;
	s->squares += v * v;
}

/* Adds n elements of four bytes or less. */
CW_SUMMARY_FN void cw_sum_add_numbers(struct cw_summary_sum *s, uint64_t word, unsigned dtype,
				      unsigned n)
{
	unsigned width = cw_sum_bytes(dtype) * 8;
	uint32_t most = 0, before_least = UINT32_MAX;

	for (unsigned i = 0; i < n; i++) {
		uint32_t bits = (uint32_t)(word >> (i * width)) & UINT32_MAX >> (32 - width);
		uint32_t magnitude = cw_sum_magnitude(bits, dtype);
		double v;

		if (cw_sum_is_ordinary(magnitude, dtype))
			v = cw_sum_normal(bits, magnitude, dtype);
		else if (cw_sum_note(s, bits, magnitude, dtype))
			v = cw_sum_value(bits, magnitude, dtype);
		else
			continue;
		if (magnitude > most)
			most = magnitude;
		if (magnitude - 1 < before_least)
			before_least = magnitude - 1;
		s->total += v;
		s->squares += v * v;
	}
	cw_sum_add_range(s, most, before_least == UINT32_MAX ? UINT64_MAX : before_least);
}

/* Adds a word of the buffer with n elements. Unused bytes of the word are 0. */
CW_SUMMARY_FN void cw_sum_add_word(struct cw_summary_sum *s, uint64_t word, uint64_t position,
				   unsigned dtype, unsigned n)
{
	s->checksum += cw_sum_mix(word, position);
	s->elements += n;
	if (cw_sum_bytes(dtype) == 8)
		cw_sum_add_number64(s, word, dtype);
	else
		cw_sum_add_numbers(s, word, dtype, n);
}

CW_SUMMARY_FN void cw_sum_join(struct cw_summary_sum *to, const struct cw_summary_sum *from)
{
	to->elements += from->elements;
	to->nans += from->nans;
	to->infs += from->infs;
	to->negative_infs += from->negative_infs;
	to->zeros += from->zeros;
	to->checksum += from->checksum;
	to->at_limit += from->at_limit;
	to->denormals += from->denormals;
	cw_sum_add_range(to, from->most, from->least - 1);
	to->total += from->total;
	to->squares += from->squares;
}

/* Below this number, 2^-500, squares lose digits. Still smaller numbers have a square of 0. */
#define CW_SUM_SQUARES_FROM 0x1p-500

/* Returns v, or NaN if the sum has left the range of a double. */
CW_SUMMARY_FN double cw_sum_in_range(double v)
{
	return v - v == 0 ? v : cw_sum_double(UINT64_C(0x7ff8000000000000));
}

/*
 * Returns the mean of the finite numbers. If their sum exceeds a double, which only fp64 can do,
 * the mean is NaN.
 */
CW_SUMMARY_FN double cw_sum_mean(const struct cw_summary_sum *s)
{
	uint64_t finite = s->elements - s->nans - s->infs;

	return finite ? cw_sum_in_range(s->total / (double)finite) : 0;
}

/*
 * Returns the square of the L2 norm. Returns NaN if the square is too large or too small for a
 * double, which happens only with fp64.
 */
CW_SUMMARY_FN double cw_sum_squares(const struct cw_summary_sum *s, unsigned dtype)
{
	if (dtype == CW_SUM_FP64 && s->most && cw_sum_double(s->most) < CW_SUM_SQUARES_FROM)
		return cw_sum_double(UINT64_C(0x7ff8000000000000));
	return cw_sum_in_range(s->squares);
}

/*
 * Writes the statistics of a whole tensor. norm is the square root of cw_sum_squares(). Host and
 * device compute the root in different ways.
 */
CW_SUMMARY_FN void cw_sum_finish(const struct cw_summary_sum *s, unsigned dtype, double norm,
				 struct cw_sum_tensor_stats *ret)
{
	double infinity = cw_sum_double(UINT64_C(0x7ff0000000000000));
	double nan = cw_sum_double(UINT64_C(0x7ff8000000000000));
	double most = cw_sum_of_magnitude(s->most, dtype);
	uint64_t above = s->infs - s->negative_infs;

	ret->low = s->nans ? nan : s->negative_infs ? -infinity : -most;
	ret->high = s->nans ? nan : above ? infinity : most;
	ret->least = s->least ? cw_sum_of_magnitude(s->least, dtype) : infinity;
	ret->mean = cw_sum_mean(s);
	if (s->infs)
		ret->mean = above ? infinity : -infinity;
	ret->norm = s->infs ? infinity : norm;
	if (s->nans || (above && s->negative_infs))
		ret->mean = nan;
	if (s->nans)
		ret->norm = nan;
}

/*
 * Returns n / elements in the format of cw_rec_summary.at_limit: the upper half of an IEEE single.
 */
CW_SUMMARY_FN uint16_t cw_sum_share(uint64_t n, uint64_t elements)
{
	union {
		uint32_t bits;
		float f;
	} u;

	u.f = elements ? (float)((double)n / (double)elements) : 0;
	return (uint16_t)(u.bits >> 16);
}

/* Returns the number of words in the buffer. The last word may be partly filled. */
CW_SUMMARY_FN uint64_t cw_sum_words(const struct cw_summary_args *args)
{
	unsigned per_word = 8 / cw_sum_bytes(args->dtype);

	return (args->elements + per_word - 1) / per_word;
}

/*
 * Returns the number of words that the kernel reads. cw_sum_position() gives the position of the
 * i-th of these words.
 */
CW_SUMMARY_FN uint64_t cw_sum_chosen(const struct cw_summary_args *args)
{
	uint64_t words = cw_sum_words(args), rest;

	rest = words % args->stride_words;
	rest = rest > args->first_word ? rest - args->first_word : 0;
	if (rest > CW_SUM_CHUNK_WORDS)
		rest = CW_SUM_CHUNK_WORDS;
	return words / args->stride_words * CW_SUM_CHUNK_WORDS + rest;
}

CW_SUMMARY_FN uint64_t cw_sum_position(const struct cw_summary_args *args, uint64_t i)
{
	if (args->stride_words == CW_SUM_CHUNK_WORDS)
		return i;
	return i / CW_SUM_CHUNK_WORDS * args->stride_words + args->first_word +
	       i % CW_SUM_CHUNK_WORDS;
}

/* Returns the number of elements in the word at this position. */
CW_SUMMARY_FN unsigned cw_sum_in_word(const struct cw_summary_args *args, uint64_t position)
{
	unsigned per_word = 8 / cw_sum_bytes(args->dtype);
	uint64_t left = args->elements - position * per_word;

	return left < per_word ? (unsigned)left : per_word;
}
