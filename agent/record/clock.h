/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fast clock for the begin and end of ops. It gives CLOCK_MONOTONIC, like all times in the
 * record. If the kernel's own clock is the processor's time stamp counter, we read the counter and
 * bypass the C library. Library and vDSO are quick only while their half a dozen pages are in
 * caches and TLB. After a training step they are not, and the two readings of a call then cost two
 * microseconds.
 *
 * The helper thread compares both clocks once a second and publishes a rate: a moment on both
 * clocks, and the speed of the counter. A reading extrapolates from that moment for a few seconds
 * at most. In these seconds the kernel may slew its clock, by 500 ppm at worst. The error stays
 * below 2 ms and is usually below a microsecond.
 *
 * A reading uses the library before the first rate, if the helper thread is late, and on other
 * processors. Once the clocks have drifted apart, all readings use the library. They drift apart if
 * the counter was reset, or ran on through a suspend.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

struct cw_clock_rate {
	uint64_t ticks, ns; /* one moment on the counter and on CLOCK_MONOTONIC */
	uint64_t mult;      /* ns per tick, times 2^32 */
	uint64_t valid;     /* the rate expires this many ticks after that moment */
};

struct cw_clock {
	uint32_t rate_generation; /* rates[rate_generation % 2] is the valid rate; 0 = none */
	struct cw_clock_rate rates[2];
};

extern struct cw_clock cw_clock;

#ifdef __x86_64__
#define CW_CLOCK_TICKS() __builtin_ia32_rdtsc()
#else
#define CW_CLOCK_TICKS() UINT64_C(0) /* the helper thread then never publishes a rate */
#endif

/*
 * Reads the record's clock, which may differ from cw_now_ns() by some microseconds. Any thread,
 * takes no lock.
 */
static inline uint64_t cw_op_ns(void)
{
	uint32_t generation = __atomic_load_n(&cw_clock.rate_generation, __ATOMIC_ACQUIRE);
	const struct cw_clock_rate *r = &cw_clock.rates[generation % 2];
	uint64_t since, ns;

	if (cw_unlikely(!generation))
		return cw_now_ns();
	since = CW_CLOCK_TICKS() - __atomic_load_n(&r->ticks, __ATOMIC_RELAXED);
	ns = __atomic_load_n(&r->ns, __ATOMIC_RELAXED) +
	     (uint64_t)((unsigned __int128)since * __atomic_load_n(&r->mult, __ATOMIC_RELAXED) >>
			32);
	if (cw_unlikely(since >= __atomic_load_n(&r->valid, __ATOMIC_RELAXED)))
		return cw_now_ns();
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/*
	 * If the scheduler delayed this thread for two seconds, the helper thread may have
	 * overwritten the rate. The time is then wrong.
	 */
	if (cw_unlikely(__atomic_load_n(&cw_clock.rate_generation, __ATOMIC_RELAXED) != generation))
		return cw_now_ns();
	return ns;
}

/*
 * Compares the two clocks. Runs once a second, only in the helper thread. The first call reads
 * /sys.
 */
void cw_clock_step(void);

struct cw_clock_point {
	uint64_t ticks, ns;
};

/*
 * Publishes a new rate from a comparison. The caller has just read both clocks. Returns false if
 * the clocks have drifted apart. We then withdraw the rate and never publish another one.
 */
bool cw_clock_calibrate(struct cw_clock_point now);
