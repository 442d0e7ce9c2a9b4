/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of durations: the quantiles of millions of them fit in half a KiB. Each doubling of
 * the duration has four classes, and a quantile is the middle of its class. So a quantile is within
 * 12.5 % of a measured duration; the longest duration is exact. One class holds all durations below
 * 64 ns.
 *
 * Any thread, one at a time.
 */
#pragma once

#include <stdint.h>

/*
 * The number of classes. From 64 ns on there are four per doubling. The last class holds all
 * durations from 70 s on.
 */
#define CW_DURATIONS_CLASSES 122u

struct cw_durations {
	uint64_t n, max_ns;
	uint32_t counts[CW_DURATIONS_CLASSES]; /* saturate at UINT32_MAX */
};

void cw_durations_add(struct cw_durations *d, uint64_t ns);
/* Adds all durations of `from` to d. */
void cw_durations_join(struct cw_durations *d, const struct cw_durations *from);
/*
 * Returns the quantile: `percent` of 100 durations do not exceed it. It is never above the longest
 * duration. 0 if d is empty.
 */
uint64_t cw_durations_quantile_ns(const struct cw_durations *d, unsigned percent);
