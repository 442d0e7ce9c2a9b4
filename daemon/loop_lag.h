/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long the daemon's loop was held up, and keeps the maximum. There are two measures.
 * The CPU time of one iteration finds code that computes for long; it is exact. The lateness of a
 * timer finds code that blocks. A busy machine also makes a timer late, which is not our fault. We
 * therefore subtract the time in which the loop could run but the kernel gave the processor to
 * other threads. The result is a lower bound.
 *
 * Loop thread only.
 */
#pragma once

#include <stdint.h>

struct cw_loop_lag {
	int64_t period_ns;
	int64_t last_ns; /* time of the previous tick; 0 = none */
	/* The run delay of this thread at the previous tick: time spent waiting for a processor. */
	int64_t run_delay_ns;
	int64_t cpu_ns; /* CPU time at the end of the previous iteration; 0 = none */
	int64_t max_ns;
	int run_delay_fd; /* the file with the run delay of this thread; -1 = the kernel has none */
};

/* Opens a file of the calling thread; cw_loop_lag_fini() closes it. */
void cw_loop_lag_init(struct cw_loop_lag *lag, int64_t period_ns);
void cw_loop_lag_fini(struct cw_loop_lag *lag);
/*
 * Measures the lateness of a timer. Call this when the timer fires. now_ns: monotonic time.
 * run_delay_ns: this thread's total run delay so far.
 */
void cw_loop_lag_tick(struct cw_loop_lag *lag, int64_t now_ns, int64_t run_delay_ns);
/*
 * Measures the CPU time of an iteration. Call this at the end of each iteration of the loop.
 * cpu_ns: the thread's CPU time so far.
 */
void cw_loop_lag_end_iteration(struct cw_loop_lag *lag, int64_t cpu_ns);
/* Returns the run delay of this thread, or 0 if the kernel reports none. Does not block. */
int64_t cw_loop_lag_run_delay_ns(const struct cw_loop_lag *lag);
