/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that ranks have spent waiting for other ranks, as far as their windows show it. A rank
 * waits if it enters a call and makes no further call until the last member has entered. Waiting
 * time is not the rank's own delay, however late it enters its next call.
 *
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct slow_wait {
	int64_t *before_ns; /* per op of all windows: the time that its rank had waited before it */
	size_t *member_first; /* per member of all comms, in order: the number of its first op */
	size_t *comm_first;   /* per comm: index of its first member in member_first */
};

/*
 * Times of other hosts pass through a network and a daemon's loop. They may be wrong by this much.
 */
#define SLOW_CLOCK_NS (INT64_C(50) * 1000000)

/*
 * Limits of times and durations. A snapshot may come from a file that any user wrote. With these
 * limits, sums of its times do not overflow.
 */
#define SLOW_TIME_MAX_NS (INT64_C(1) << 61)
#define SLOW_SPAN_MAX_NS (INT64_C(1) << 55)

static inline int64_t slow_within_ns(int64_t ns, int64_t limit_ns)
{
	return ns > limit_ns ? limit_ns : ns < -limit_ns ? -limit_ns : ns;
}

/*
 * Computes the waits. O(window ops × log window ops). Returns 0 or -ENOMEM; the caller runs
 * slow_wait_fini() in either case.
 */
int slow_wait_init(const struct cw_snapshot *snap, struct slow_wait *ret);
void slow_wait_fini(struct slow_wait *w);

/*
 * Returns how long the member's rank had waited, in all its comms, when it entered op `op` of its
 * window.
 */
int64_t slow_wait_before_ns(const struct slow_wait *w, uint32_t comm, uint32_t member, uint32_t op);
