/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the daemon's one loop was held up: whoever blocks it, or computes for long, makes its
 * timers late. Time in which the loop could have run and the kernel gave the processor to others is
 * taken out: that is the machine's load, not a fault of ours.
 *
 * Told by a timer that it has, so a hold-up of length t is seen with the share of it that overlaps
 * a tick: the longest of many is what counts. Loop thread only.
 */
#pragma once

#include <stdint.h>

struct cw_loop_lag {
	int64_t period_ns;
	int64_t last_ns;      /* the tick before; 0 = none */
	int64_t run_delay_ns; /* of this thread, up to then */
	int64_t max_ns;
};

void cw_loop_lag_init(struct cw_loop_lag *lag, int64_t period_ns);
/* The timer fired at now_ns, monotonic, when this thread had waited run_delay_ns for a processor.
 */
void cw_loop_lag_tick(struct cw_loop_lag *lag, int64_t now_ns, int64_t run_delay_ns);
/* What the kernel says of the calling thread; 0 where it does not. Does not block. */
int64_t cw_loop_lag_run_delay_ns(void);
