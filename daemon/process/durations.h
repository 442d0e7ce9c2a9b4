/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of durations. It stores the quantiles of millions of durations in half a KiB. Each
 * doubling of the duration has four classes. A quantile is the middle of its class, so it is within
 * 12.5 % of a measured duration. The longest duration is exact. All durations below 64 ns are in
 * one class.
 *
 * Any thread, but only one at a time.
 */
#pragma once

#include <stdint.h>

/*
 * Number of classes. From 64 ns on, each doubling has four classes. The last class holds all
 * durations from 70 s on.
 */
#define CW_DURATIONS_CLASSES 122u

struct cw_durations {
	uint64_t n, max_ns;
	uint32_t counts[CW_DURATIONS_CLASSES]; /* a count stays at UINT32_MAX once it is reached */
};

void cw_durations_add(struct cw_durations *d, uint64_t ns);
/* Adds all durations of `from` to d. */
void cw_durations_join(struct cw_durations *d, const struct cw_durations *from);
/*
 * Returns the quantile: `percent` of 100 durations are at most this long. The result is never above
 * the longest duration. 0 = d is empty.
 */
uint64_t cw_durations_quantile_ns(const struct cw_durations *d, unsigned percent);
