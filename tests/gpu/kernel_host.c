/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/kernel_host.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (128u << 10)

enum state { RUNS, WAITS, ENDED };

static struct {
	ucontext_t host, fibers[CW_SUM_THREADS];
	enum state states[CW_SUM_THREADS];
	char *stacks;
	uint32_t tid, block, blocks;
	bool is_backwards;
	uint64_t clock;
	const struct cw_summary_args *args;
} machine;

static void refuse(const char *what)
{
	fprintf(stderr, "kernel on the host: thread %u of block %u: %s\n", machine.tid,
		machine.block, what);
	abort();
}

/* ---- in place of agent/cuda/kernel_machine.h ---- */

#define __global__
#define __device__
#define __shared__
#define __launch_bounds__(n)
#define KERNEL

static inline uint32_t tid_get(void)
{
	return machine.tid;
}

static inline uint32_t ctaid_get(void)
{
	return machine.block;
}

static inline uint32_t nctaid_get(void)
{
	return machine.blocks;
}

static inline uint64_t device_clock(void)
{
	return ++machine.clock;
}

static void wait_for_block(void)
{
	uint32_t self = machine.tid;

	machine.states[self] = WAITS;
	if (swapcontext(&machine.fibers[self], &machine.host) < 0)
		refuse("swapcontext failed");
}

static inline void fence_device(void)
{
}

static inline void fence_system(void)
{
}

static inline uint32_t count_up(uint32_t *p, uint32_t limit)
{
	uint32_t old = *p;

	*p = old >= limit ? 0 : old + 1;
	return old;
}

static inline uint32_t exchange(uint32_t *p, uint32_t value)
{
	uint32_t old = *p;

	*p = value;
	return old;
}

static inline double square_root(double v)
{
	return sqrt(v);
}

static inline uint64_t load64(uint64_t address)
{
	if (address % 8)
		refuse("a load of eight bytes that is not aligned");
	return *(const uint64_t *)(uintptr_t)address;
}

static inline uint64_t load8(uint64_t address)
{
	return *(const uint8_t *)(uintptr_t)address;
}

#define CW_KERNEL_MACHINE "tests/gpu/kernel_host.h"
void cw_summary(struct cw_summary_args args);
void cw_stamp(uint64_t where);
#include "agent/cuda/summary_kernel.cu"

/* ---- launching ---- */

static void fiber(void)
{
	cw_summary(*machine.args);
	machine.states[machine.tid] = ENDED;
}

static void make_fiber(uint32_t i)
{
	ucontext_t *c = &machine.fibers[i];

	if (getcontext(c) < 0)
		refuse("getcontext failed");
	c->uc_stack.ss_sp = machine.stacks + (size_t)i * STACK_BYTES;
	c->uc_stack.ss_size = STACK_BYTES;
	c->uc_link = &machine.host;
	makecontext(c, fiber, 0);
	machine.states[i] = RUNS;
}

/* All threads up to their next barrier or their end; false when they have ended. */
static bool run_round(void)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < CW_SUM_THREADS; i++) {
		uint32_t tid = machine.is_backwards ? CW_SUM_THREADS - 1 - i : i;

		machine.tid = tid;
		machine.states[tid] = RUNS;
		if (swapcontext(&machine.host, &machine.fibers[tid]) < 0)
			refuse("swapcontext failed");
		waiting += machine.states[tid] == WAITS;
	}
	if (waiting && waiting != CW_SUM_THREADS)
		refuse("some threads wait at a barrier, and others have ended");
	return waiting != 0;
}

void kernel_host_run(const struct cw_summary_args *args, uint32_t blocks, bool is_backwards)
{
	if (!machine.stacks) {
		machine.stacks =
			mmap(NULL, (size_t)CW_SUM_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (machine.stacks == MAP_FAILED)
			refuse("no memory for the stacks");
	}
	if (!blocks || blocks > CW_SUM_BLOCKS)
		refuse("more blocks than the kernel has room for");
	machine.args = args;
	machine.blocks = blocks;
	machine.is_backwards = is_backwards;
	for (uint32_t n = 0; n < blocks; n++) {
		machine.block = is_backwards ? blocks - 1 - n : n;
		for (uint32_t i = 0; i < CW_SUM_THREADS; i++)
			make_fiber(i);
		while (run_round())
			;
	}
}

void kernel_host_reset(void)
{
	has_first = 0;
}
