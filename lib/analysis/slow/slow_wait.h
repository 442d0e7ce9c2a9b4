/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long ranks have waited for others, as far as their windows tell: who enters a call and makes
 * no other until the last of its members has come, has waited for that one. Time that a rank spent
 * so is not its own, however late it comes to whatever it does next.
 *
 * Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct slow_wait {
	int64_t *before_ns;   /* per op of a window */
	size_t *member_first; /* per member, the comms' one after the other: its first op */
	size_t *comm_first;   /* per comm: its first member */
};

/* Times of other hosts come over a network and through a daemon's loop: they may be off by this. */
#define SLOW_CLOCK_NS (INT64_C(50) * 1000000)

/* A snapshot may come from a file that anybody wrote: sums of what is held in these fit. */
#define SLOW_TIME_MAX_NS (INT64_C(1) << 61)
#define SLOW_SPAN_MAX_NS (INT64_C(1) << 55)

static inline int64_t slow_within_ns(int64_t ns, int64_t limit_ns)
{
	return ns > limit_ns ? limit_ns : ns < -limit_ns ? -limit_ns : ns;
}

/* O(window ops × log window ops). Returns 0 or -ENOMEM; slow_wait_fini() in either case. */
int slow_wait_init(const struct cw_snapshot *snap, struct slow_wait *ret);
void slow_wait_fini(struct slow_wait *w);

/* What the member's rank had waited, in all its comms, when it entered this op of its window. */
int64_t slow_wait_before_ns(const struct slow_wait *w, uint32_t comm, uint32_t member, uint32_t op);
