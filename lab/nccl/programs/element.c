/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/nccl/programs/element.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

const struct element_type element_types[ELEMENT_TYPES] = {
	{ "int8", ncclInt8, 1, false, true },
	{ "uint8", ncclUint8, 1, false, false },
	{ "int32", ncclInt32, 4, false, true },
	{ "uint32", ncclUint32, 4, false, false },
	{ "int64", ncclInt64, 8, false, true },
	{ "uint64", ncclUint64, 8, false, false },
	{ "float16", ncclFloat16, 2, true, true },
	{ "float32", ncclFloat32, 4, true, true },
	{ "float64", ncclFloat64, 8, true, true },
	{ "bfloat16", ncclBfloat16, 2, true, true },
	{ "float8e4m3", ncclFloat8e4m3, 1, true, true },
	{ "float8e5m2", ncclFloat8e5m2, 1, true, true },
};

/* A number with this many bits of exponent and mantissa, after the sign; not subnormal. */
static uint16_t encode(double v, int exponent_bits, int mantissa_bits)
{
	int bias = (1 << (exponent_bits - 1)) - 1;
	unsigned int sign = signbit(v) ? 1u << (exponent_bits + mantissa_bits) : 0;
	unsigned int fraction;
	int exponent;
	double m;

	if (v == 0)
		return (uint16_t)sign;
	m = frexp(fabs(v), &exponent); /* in [0.5, 1) */
	fraction = (unsigned int)nearbyint(ldexp(2 * m - 1, mantissa_bits));
	/* A fraction that rounds up to 1 correctly carries into the exponent. */
	return (uint16_t)(sign + ((unsigned int)(exponent - 1 + bias) << mantissa_bits) + fraction);
}

void element_put(void *data, size_t i, const struct element_type *t, double v)
{
	char *at = (char *)data + i * t->size;
	uint16_t h;
	int64_t n = (int64_t)v;
	float f = (float)v;

	switch (t->dtype) {
	case ncclFloat64:
		memcpy(at, &v, sizeof(v));
		return;
	case ncclFloat32:
		memcpy(at, &f, sizeof(f));
		return;
	case ncclFloat16:
		h = encode(v, 5, 10);
		break;
	case ncclBfloat16:
		h = encode(v, 8, 7);
		break;
	case ncclFloat8e4m3:
		h = encode(v, 4, 3);
		break;
	case ncclFloat8e5m2:
		h = encode(v, 5, 2);
		break;
	default:
		memcpy(at, &n, t->size); /* two's complement, low byte first */
		return;
	}
	memcpy(at, &h, t->size);
}
