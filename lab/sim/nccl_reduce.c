/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic of the simulated NCCL. We compute floating point of any width in double and round once
 * at the end, and integers in 64 bits. That is simple, and gives every rank the same result. The
 * 8-bit floating point types allow copies, but no reductions.
 */
#include "lab/sim/nccl_reduce.h"

#include <math.h>
#include <string.h>

size_t sim_dtype_size(ncclDataType_t dtype)
{
	switch (dtype) {
	case ncclInt8:
	case ncclUint8:
	case ncclFloat8e4m3:
	case ncclFloat8e5m2:
		return 1;
	case ncclFloat16:
	case ncclBfloat16:
		return 2;
	case ncclInt32:
	case ncclUint32:
	case ncclFloat32:
		return 4;
	case ncclInt64:
	case ncclUint64:
	case ncclFloat64:
		return 8;
	default:
		return 0;
	}
}

bool sim_dtype_can_reduce(ncclDataType_t dtype)
{
	return sim_dtype_size(dtype) && dtype != ncclFloat8e4m3 && dtype != ncclFloat8e5m2;
}

static bool is_float(ncclDataType_t dtype)
{
	return dtype == ncclFloat16 || dtype == ncclBfloat16 || dtype == ncclFloat32 ||
	       dtype == ncclFloat64;
}

static bool is_unsigned(ncclDataType_t dtype)
{
	return dtype == ncclUint8 || dtype == ncclUint32 || dtype == ncclUint64;
}

static double half_to_double(uint16_t h)
{
	int exponent = (h >> 10) & 31;
	double m = h & 1023;
	double v;

	if (exponent == 31)
		v = m != 0 ? NAN : INFINITY;
	else if (exponent == 0)
		v = ldexp(m, -24);
	else
		v = ldexp(m + 1024, exponent - 25);
	return h & 0x8000 ? -v : v;
}

static uint16_t double_to_half(double v)
{
	uint16_t sign = signbit(v) ? 0x8000 : 0;
	double a = fabs(v);
	int exponent;

	if (isnan(v))
		return 0x7e00;
	if (a >= 65520)
		return sign | 0x7c00;
	if (a < ldexp(1, -14))
		return sign | (uint16_t)nearbyint(ldexp(a, 24));
	(void)frexp(a, &exponent); /* a = m * 2^exponent with m in [0.5, 1) */
	/* If the mantissa rounds up to 2048, the carry into the exponent gives the right number. */
	return sign | (uint16_t)((unsigned int)(exponent + 13) * 1024 +
				 nearbyint(ldexp(a, 11 - exponent)));
}

static double bf16_to_double(uint16_t b)
{
	uint32_t bits = (uint32_t)b << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint16_t double_to_bf16(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if (isnan(f))
		return 0x7fc0;
	/* Round to nearest, ties to even. */
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static union sim_value load(const void *data, size_t i, ncclDataType_t dtype)
{
	union sim_value v = { 0 };

	switch (dtype) {
	case ncclInt8:
		/* NOLINTNEXTLINE(bugprone-signed-char-misuse): a number */
		v.i = ((const int8_t *)data)[i];
		break;
	case ncclUint8:
		v.u = ((const uint8_t *)data)[i];
		break;
	case ncclInt32:
		v.i = ((const int32_t *)data)[i];
		break;
	case ncclUint32:
		v.u = ((const uint32_t *)data)[i];
		break;
	case ncclInt64:
		v.i = ((const int64_t *)data)[i];
		break;
	case ncclUint64:
		v.u = ((const uint64_t *)data)[i];
		break;
	case ncclFloat16:
		v.f = half_to_double(((const uint16_t *)data)[i]);
		break;
	case ncclBfloat16:
		v.f = bf16_to_double(((const uint16_t *)data)[i]);
		break;
	case ncclFloat32:
		v.f = (double)((const float *)data)[i];
		break;
	case ncclFloat64:
		v.f = ((const double *)data)[i];
		break;
	default:
		break;
	}
	return v;
}

static void save(void *data, size_t i, ncclDataType_t dtype, union sim_value v)
{
	switch (dtype) {
	case ncclInt8:
	case ncclUint8:
		((uint8_t *)data)[i] = (uint8_t)v.u;
		break;
	case ncclInt32:
	case ncclUint32:
		((uint32_t *)data)[i] = (uint32_t)v.u;
		break;
	case ncclInt64:
	case ncclUint64:
		((uint64_t *)data)[i] = v.u;
		break;
	case ncclFloat16:
		((uint16_t *)data)[i] = double_to_half(v.f);
		break;
	case ncclBfloat16:
		((uint16_t *)data)[i] = double_to_bf16(v.f);
		break;
	case ncclFloat32:
		((float *)data)[i] = (float)v.f;
		break;
	case ncclFloat64:
		((double *)data)[i] = v.f;
		break;
	default:
		break;
	}
}

static double combine_float(double a, double b, ncclRedOp_t op)
{
	switch (op) {
	case ncclProd:
		return a * b;
	case ncclMax:
		return fmax(a, b);
	case ncclMin:
		return fmin(a, b);
	default: /* ncclSum, ncclAvg, or a user-made operator; other code divides or multiplies */
		return a + b;
	}
}

/*
 * Combines two integers. Unsigned arithmetic wraps, as the device's does; the sign matters only in
 * comparisons.
 */
static union sim_value combine_int(union sim_value a, union sim_value b, ncclRedOp_t op,
				   bool has_no_sign)
{
	bool a_is_less = has_no_sign ? a.u < b.u : a.i < b.i;

	switch (op) {
	case ncclProd:
		a.u *= b.u;
		return a;
	case ncclMax:
		return a_is_less ? b : a;
	case ncclMin:
		return a_is_less ? a : b;
	default:
		a.u += b.u;
		return a;
	}
}

void sim_reduce_first(union sim_value *acc, const void *data, size_t count, ncclDataType_t dtype)
{
	for (size_t i = 0; i < count; i++)
		acc[i] = load(data, i, dtype);
}

void sim_reduce_next(union sim_value *acc, const void *data, size_t count, ncclDataType_t dtype,
		     ncclRedOp_t op)
{
	bool has_no_sign = is_unsigned(dtype);

	if (is_float(dtype)) {
		for (size_t i = 0; i < count; i++)
			acc[i].f = combine_float(acc[i].f, load(data, i, dtype).f, op);
		return;
	}
	for (size_t i = 0; i < count; i++)
		acc[i] = combine_int(acc[i], load(data, i, dtype), op, has_no_sign);
}

void sim_reduce_store(void *dst, const union sim_value *acc, size_t count, ncclDataType_t dtype,
		      ncclRedOp_t op, int nranks)
{
	for (size_t i = 0; i < count; i++) {
		union sim_value v = acc[i];

		if (op == ncclAvg && is_float(dtype))
			v.f /= nranks;
		else if (op == ncclAvg && is_unsigned(dtype))
			v.u /= (uint64_t)nranks;
		else if (op == ncclAvg)
			v.i /= nranks;
		save(dst, i, dtype, v);
	}
}

void sim_reduce_scale(void *data, size_t count, ncclDataType_t dtype, double scalar)
{
	for (size_t i = 0; i < count; i++) {
		union sim_value v = load(data, i, dtype);

		if (is_float(dtype))
			v.f *= scalar;
		else if (is_unsigned(dtype))
			v.u *= (uint64_t)scalar;
		else
			v.i *= (int64_t)scalar;
		save(data, i, dtype, v);
	}
}

double sim_value_to_double(const void *data, ncclDataType_t dtype)
{
	union sim_value v = load(data, 0, dtype);

	if (is_float(dtype))
		return v.f;
	return is_unsigned(dtype) ? (double)v.u : (double)v.i;
}
