/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 16-bit sums round after each addition. 8-bit sums round after each addition to 16 bits and then
 * to 8, like the kernels (src/device/reduce_kernel.h).
 */
#include "lab/nccl/device/reducer.h"

#include <cmath>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace lab
{

namespace
{

/* The arithmetic of a type; W is the type of the computation. */
template <typename T> struct Kind {
	typedef T W;
	static W up(T v)
	{
		return v;
	}
	static T down(W v)
	{
		return v;
	}
};

template <> struct Kind<__half> {
	typedef float W;
	static W up(__half v)
	{
		return __half2float(v);
	}
	static __half down(W v)
	{
		return __float2half_rn(v);
	}
};

template <> struct Kind<__nv_bfloat16> {
	typedef float W;
	static W up(__nv_bfloat16 v)
	{
		return __bfloat162float(v);
	}
	static __nv_bfloat16 down(W v)
	{
		return __float2bfloat16_rn(v);
	}
};

template <typename F8> struct Kind8 {
	typedef float W;
	static W up(F8 v)
	{
		return float(v);
	}
	static F8 down(W v)
	{
		return F8(__float2half_rn(v));
	}
};

template <> struct Kind<__nv_fp8_e4m3> : Kind8<__nv_fp8_e4m3> {
};

template <> struct Kind<__nv_fp8_e5m2> : Kind8<__nv_fp8_e5m2> {
};

template <typename T> T arg_as(uint64_t arg)
{
	T v;

	memcpy((void *)&v, &arg, sizeof(v));
	return v;
}

template <typename T> uint64_t load_arg(const void *ptr)
{
	uint64_t arg = 0;

	memcpy(&arg, ptr, sizeof(T));
	return arg;
}

uint64_t load_arg_whole(const void *ptr)
{
	return load_arg<uint64_t>(ptr);
}

template <typename T> void sum(void *dst, const void *a, const void *b, size_t count, uint64_t arg)
{
	typedef Kind<T> K;

	for (size_t i = 0; i < count; i++)
		((T *)dst)[i] = K::down(K::up(((const T *)a)[i]) + K::up(((const T *)b)[i]));
}

template <typename T> void prod(void *dst, const void *a, const void *b, size_t count, uint64_t arg)
{
	typedef Kind<T> K;

	for (size_t i = 0; i < count; i++)
		((T *)dst)[i] = K::down(K::up(((const T *)a)[i]) * K::up(((const T *)b)[i]));
}

/* For integers, the argument maps the order (signed, or maximum) to an unsigned minimum. */
template <typename T>
void least_int(void *dst, const void *a, const void *b, size_t count, uint64_t arg)
{
	T mask = (T)arg;

	for (size_t i = 0; i < count; i++) {
		T x = ((const T *)a)[i];
		T y = ((const T *)b)[i];

		((T *)dst)[i] = (T)(x ^ mask) < (T)(y ^ mask) ? x : y;
	}
}

template <typename T>
void extreme_float(void *dst, const void *a, const void *b, size_t count, uint64_t arg)
{
	typedef Kind<T> K;
	bool is_min = (arg & 1) == 0;

	for (size_t i = 0; i < count; i++) {
		typename K::W x = K::up(((const T *)a)[i]);
		typename K::W y = K::up(((const T *)b)[i]);

		((T *)dst)[i] = K::down(is_min ? fmin(x, y) : fmax(x, y));
	}
}

template <typename T> void scale(void *dst, const void *src, size_t count, uint64_t arg)
{
	typedef Kind<T> K;
	typename K::W factor = K::up(arg_as<T>(arg));

	for (size_t i = 0; i < count; i++)
		((T *)dst)[i] = K::down(K::up(((const T *)src)[i]) * factor);
}

/* The sign is the lowest bit of the argument, the divisor the rest. */
template <typename T> void divide(void *dst, size_t count, uint64_t arg)
{
	uint64_t divisor = (arg >> 1) & 0x7fffffff;
	T top = (T) ~((T)-1 >> 1);

	for (size_t i = 0; i < count; i++) {
		T v = ((T *)dst)[i];
		bool is_negative = (arg & 1) && (v & top);
		T q = (T)((is_negative ? (T)-v : v) / divisor);

		((T *)dst)[i] = is_negative ? (T)-q : q;
	}
}

template <typename T> const Reducer *int_reducer(int op)
{
	static const Reducer table[ncclNumDevRedOps] = {
		{ sizeof(T), sum<T>, nullptr, nullptr, load_arg<T> },
		{ sizeof(T), prod<T>, nullptr, nullptr, load_arg<T> },
		{ sizeof(T), least_int<T>, nullptr, nullptr, load_arg<T> },
		{ sizeof(T), sum<T>, scale<T>, nullptr, load_arg<T> },
		{ sizeof(T), sum<T>, nullptr, divide<T>, load_arg_whole },
	};

	return &table[op];
}

template <typename T> const Reducer *float_reducer(int op)
{
	static const Reducer table[ncclNumDevRedOps] = {
		{ sizeof(T), sum<T>, nullptr, nullptr, load_arg<T> },
		{ sizeof(T), prod<T>, nullptr, nullptr, load_arg<T> },
		{ sizeof(T), extreme_float<T>, nullptr, nullptr, load_arg<T> },
		{ sizeof(T), sum<T>, scale<T>, nullptr, load_arg<T> },
		{ 0, nullptr, nullptr, nullptr, nullptr },
	};

	return op == ncclDevSumPostDiv ? nullptr : &table[op];
}

static_assert(ncclDevSum == 0 && ncclDevProd == 1 && ncclDevMinMax == 2 && ncclDevPreMulSum == 3 &&
		      ncclDevSumPostDiv == 4 && ncclNumDevRedOps == 5,
	      "the tables above are in another order");

} // namespace

const Reducer *reducer_of(int op, int type)
{
	if (op < 0 || op >= ncclNumDevRedOps)
		return nullptr;
	switch (type) {
	case ncclInt8:
	case ncclUint8:
		return int_reducer<uint8_t>(op);
	case ncclInt32:
	case ncclUint32:
		return int_reducer<uint32_t>(op);
	case ncclInt64:
	case ncclUint64:
		return int_reducer<uint64_t>(op);
	case ncclFloat16:
		return float_reducer<__half>(op);
	case ncclFloat32:
		return float_reducer<float>(op);
	case ncclFloat64:
		return float_reducer<double>(op);
	case ncclBfloat16:
		return float_reducer<__nv_bfloat16>(op);
	case ncclFloat8e4m3:
		return float_reducer<__nv_fp8_e4m3>(op);
	case ncclFloat8e5m2:
		return float_reducer<__nv_fp8_e5m2>(op);
	default:
		return nullptr;
	}
}

const Reducer *reducer_of_bytes()
{
	return int_reducer<uint8_t>(ncclDevSum);
}

} // namespace lab
