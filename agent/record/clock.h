/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an op began and ended: CLOCK_MONOTONIC, as everything in the record, but read without the C
 * library where the kernel's own clock is the processor's time stamp counter. Reading it through
 * library and vDSO is quick only while their half a dozen pages are in caches and TLB; after a
 * training step they are not, and the two readings of a call then cost two microseconds.
 *
 * The helper thread compares both clocks once a beat, and publishes where they met and how fast the
 * counter runs. A reading goes on from there for a few seconds at most: what the kernel slews its
 * clock by meanwhile (500 ppm at worst) stays below 2 ms, and is usually below a microsecond. Until
 * there is a rate, when the thread is late, on other processors, and for good once the two clocks
 * parted (a counter that was reset, or ran on through a suspend), it is the library's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

struct cw_clock_rate {
	uint64_t ticks, ns; /* where both clocks met */
	uint64_t mult;      /* ns per tick, times 2^32 */
	uint64_t valid;     /* ticks from there that this may be used for */
};

struct cw_clock {
	uint32_t turn; /* rates[turn % 2] holds; 0 = none */
	struct cw_clock_rate rates[2];
};

extern struct cw_clock cw_clock;

#ifdef __x86_64__
#define CW_CLOCK_TICKS() __builtin_ia32_rdtsc()
#else
#define CW_CLOCK_TICKS() UINT64_C(0) /* no rate is ever published */
#endif

/* Record clock; may lie some microseconds beside what cw_now_ns() says. Any thread, lock-free. */
static inline uint64_t cw_op_ns(void)
{
	uint32_t turn = __atomic_load_n(&cw_clock.turn, __ATOMIC_ACQUIRE);
	const struct cw_clock_rate *r = &cw_clock.rates[turn % 2];
	uint64_t since, ns;

	if (cw_unlikely(!turn))
		return cw_now_ns();
	since = CW_CLOCK_TICKS() - __atomic_load_n(&r->ticks, __ATOMIC_RELAXED);
	ns = __atomic_load_n(&r->ns, __ATOMIC_RELAXED) +
	     (uint64_t)((unsigned __int128)since * __atomic_load_n(&r->mult, __ATOMIC_RELAXED) >>
			32);
	if (cw_unlikely(since >= __atomic_load_n(&r->valid, __ATOMIC_RELAXED)))
		return cw_now_ns();
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* Held up here for two beats: the rate was being written anew. */
	if (cw_unlikely(__atomic_load_n(&cw_clock.turn, __ATOMIC_RELAXED) != turn))
		return cw_now_ns();
	return ns;
}

/* Compares the clocks; once a beat. The helper thread only; reads /sys the first time. */
void cw_clock_step(void);

struct cw_clock_point {
	uint64_t ticks, ns;
};

/*
 * What a comparison comes to, for whoever does it: both clocks read now. Return: false when they
 * have parted; nothing is published from then on.
 */
bool cw_clock_calibrate(struct cw_clock_point now);
