/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU instructions that the kernels need. We write them as PTX, so that nvcc and clang agree on
 * their meaning. A test compiles the kernels for the host. It replaces this file by one that does
 * the same on the CPU.
 */
#pragma once

#include <stdint.h>

#if defined(__clang__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#endif

#define KERNEL extern "C" __global__

/*
 * The "memory" clobbers below forbid the compiler to move a later read in front of the instruction.
 */
#define READ_REGISTER(name)                                                                        \
	static __device__ inline uint32_t name##_get(void)                                         \
	{                                                                                          \
		uint32_t v;                                                                        \
		asm volatile("mov.u32 %0, %%" #name ".x;" : "=r"(v));                              \
		return v;                                                                          \
	}
READ_REGISTER(tid)
READ_REGISTER(ctaid)
READ_REGISTER(nctaid)

static __device__ inline uint64_t device_clock(void)
{
	uint64_t v;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v)::"memory");
	return v;
}

static __device__ inline void wait_for_block(void)
{
	asm volatile("bar.sync 0;" ::: "memory");
}

static __device__ inline void fence_device(void)
{
	asm volatile("membar.gl;" ::: "memory");
}

static __device__ inline void fence_system(void)
{
	asm volatile("membar.sys;" ::: "memory");
}

/* Computes *p = *p >= limit ? 0 : *p + 1 in one step; returns the old value. */
static __device__ inline uint32_t count_up(uint32_t *p, uint32_t limit)
{
	uint32_t old;

	asm volatile("atom.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(limit) : "memory");
	return old;
}

static __device__ inline uint32_t exchange(uint32_t *p, uint32_t value)
{
	uint32_t old;

	asm volatile("atom.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(value) : "memory");
	return old;
}

static __device__ inline double square_root(double v)
{
	double r;

	asm("sqrt.rn.f64 %0, %1;" : "=d"(r) : "d"(v));
	return r;
}

/*
 * Loads a word of the tensor. The tensor does not change while we run, because the op that could
 * change it has not begun.
 */
static __device__ inline uint64_t load64(uint64_t address)
{
	uint64_t v;

	asm("ld.global.nc.u64 %0, [%1];" : "=l"(v) : "l"(address));
	return v;
}

static __device__ inline uint64_t load8(uint64_t address)
{
	uint32_t v;

	asm("ld.global.nc.u8 %0, [%1];" : "=r"(v) : "l"(address));
	return v;
}
