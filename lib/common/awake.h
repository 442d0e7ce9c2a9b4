/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long this process has been awake. This clock stands still while the loop is held up: by
 * SIGSTOP, a disk that hangs, the migration of the machine, or too few processors.
 *
 * We judge silence by this clock alone. A process that was held up for a minute has received
 * nothing for a minute. That says nothing about its peers, whose messages lie unread in the kernel.
 * Deadlines of questions and answers run by this clock, too. The monotonic clock gives the time of
 * an event. It also measures how long a rank has been waiting, as agents and peers report it.
 *
 * A running loop reads the clock several times a second. If the gap between two readings is longer,
 * we count only CW_AWAKE_STEP_NS of it. So no caller has to report the gap, and all modules see the
 * same time, no matter which event comes first after the gap. CLOCK_MONOTONIC stands still while
 * the machine is suspended. A suspend is therefore no gap on either clock.
 *
 * Not thread-safe.
 */
#pragma once

#include <stdint.h>

#include "common/clock.h"

/*
 * Longer than any gap in a running loop, which ticks every 250 ms. Shorter than all deadlines that
 * users or peers rely on: the shortest silence that means anything is 5 s.
 */
#define CW_AWAKE_STEP_NS CW_NS_PER_S

struct cw_awake {
	struct cw_clock clock; /* for other modules; gives all three times */
	const struct cw_clock *of;
	int64_t looked_ns;
	int64_t held_ns; /* sum of the times that we did not count */
};

/* The caller keeps `of` alive, and must not move *a afterwards. */
void cw_awake_init(struct cw_awake *a, const struct cw_clock *of);
