/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long something took, many times over: counted by length, so that the quantiles of millions
 * fit in half a KiB. Four classes to a doubling, each told of by its middle: a quantile is within
 * 12.5 % of a duration that was measured; the longest is exact. Below 64 ns all count as one class.
 *
 * Any thread, one at a time.
 */
#pragma once

#include <stdint.h>

/* From 64 ns on, four to a doubling; the last one has all from 70 s on. */
#define CW_DURATIONS_CLASSES 122u

struct cw_durations {
	uint64_t n, max_ns;
	uint32_t counts[CW_DURATIONS_CLASSES]; /* stop at UINT32_MAX */
};

void cw_durations_add(struct cw_durations *d, uint64_t ns);
/* As if all of from's had been added. */
void cw_durations_join(struct cw_durations *d, const struct cw_durations *from);
/* The shortest that percent of 100 do not exceed, never more than the longest; 0 of none. */
uint64_t cw_durations_quantile_ns(const struct cw_durations *d, unsigned percent);
