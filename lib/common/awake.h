/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock of the time during which this process has been awake. The clock stands still while
 * something stops the event loop: SIGSTOP, a disk that hangs, the migration of the machine, or too
 * few processors.
 *
 * We judge the silence of peers by this clock alone. A process that stood still for a minute has
 * received nothing for a minute: the messages of its peers lie unread in the kernel. The silence
 * therefore says nothing about the peers. Deadlines of requests and answers run by this clock, too.
 * The monotonic clock gives the time of an event. It also measures how long a rank has been
 * waiting, as agents and peers report it.
 *
 * A running loop reads the clock several times a second. If two readings are further apart than
 * CW_AWAKE_STEP_NS, we count only CW_AWAKE_STEP_NS of the gap. All modules thereby see the same
 * time, whichever event comes first after the gap. CLOCK_MONOTONIC stands still while the machine
 * is suspended, so a suspend is no gap on either clock.
 *
 * Not thread-safe.
 */
#pragma once

#include <stdint.h>

#include "common/clock.h"

/*
 * The longest gap that we count in full. It is longer than any gap in a running loop, which ticks
 * every 250 ms. It is shorter than all deadlines of users and peers, of which the shortest is 5 s.
 */
#define CW_AWAKE_STEP_NS CW_NS_PER_S

struct cw_awake {
	struct cw_clock clock; /* the clock to pass to other modules; gives all three times */
	const struct cw_clock *of;
	int64_t looked_ns;
	int64_t held_ns; /* sum of the parts of gaps that we did not count */
};

/* Makes a clock on top of `of`. The caller keeps `of` alive, and must not move *a afterwards. */
void cw_awake_init(struct cw_awake *a, const struct cw_clock *of);
