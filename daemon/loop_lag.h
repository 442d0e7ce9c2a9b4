/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the daemon's one loop was held up, measured in two ways, of which the longest time ever
 * is kept. CPU time of one turn: whoever computes for long, exactly. Lateness of a timer: whoever
 * blocks; without the time in which the loop could have run and the kernel gave the processor to
 * others, because the machine's load is no fault of ours. The latter is a lower bound.
 *
 * Loop thread only.
 */
#pragma once

#include <stdint.h>

struct cw_loop_lag {
	int64_t period_ns;
	int64_t last_ns;      /* the tick before; 0 = none */
	int64_t run_delay_ns; /* of this thread, up to then */
	int64_t cpu_ns;       /* up to the end of the turn before; 0 = none */
	int64_t max_ns;
};

void cw_loop_lag_init(struct cw_loop_lag *lag, int64_t period_ns);
/* The timer fired at now_ns, monotonic, when this thread had waited run_delay_ns for a processor.
 */
void cw_loop_lag_tick(struct cw_loop_lag *lag, int64_t now_ns, int64_t run_delay_ns);
/* A turn of the loop is over; the thread's CPU time so far. */
void cw_loop_lag_turn(struct cw_loop_lag *lag, int64_t cpu_ns);
/* What the kernel says of the calling thread; 0 where it does not. Does not block. */
int64_t cw_loop_lag_run_delay_ns(void);
