/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long the daemon's loop was held up, and keeps the maximum. There are two measures.
 * The CPU time of one iteration finds code that computes for long; it is exact. The lateness of a
 * timer finds code that blocks. The machine's load is not our fault. So we subtract the time in
 * which the loop was runnable but the kernel gave the processor to other threads. The result is a
 * lower bound.
 *
 * Loop thread only.
 */
#pragma once

#include <stdint.h>

struct cw_loop_lag {
	int64_t period_ns;
	int64_t last_ns;      /* time of the previous tick; 0 = none */
	int64_t run_delay_ns; /* run delay of this thread at that tick */
	int64_t cpu_ns;       /* CPU time at the end of the previous iteration; 0 = none */
	int64_t max_ns;
};

void cw_loop_lag_init(struct cw_loop_lag *lag, int64_t period_ns);
/*
 * Call it when the timer fires. now_ns is monotonic; run_delay_ns is this thread's total run delay.
 */
void cw_loop_lag_tick(struct cw_loop_lag *lag, int64_t now_ns, int64_t run_delay_ns);
/* Call it at the end of an iteration of the loop. cpu_ns is the thread's CPU time so far. */
void cw_loop_lag_end_iteration(struct cw_loop_lag *lag, int64_t cpu_ns);
/* Returns the run delay of the calling thread, or 0 if the kernel reports none. Does not block. */
int64_t cw_loop_lag_run_delay_ns(void);
