/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/sample_throttle.h"

#include <time.h>

#include "common/clock.h"

/*
 * We read a record again after at least COST_FACTOR times the duration of its last read. With many
 * records the factor rises, so that all reads together take at most a quarter of a core.
 */
#define COST_FACTOR 100
#define COST_SHARE 4

int64_t cw_sample_throttle_next_ns(int64_t now_ns, int64_t cost_ns, unsigned n)
{
	int64_t factor = (int64_t)COST_SHARE * n;

	return now_ns + cost_ns * (factor < COST_FACTOR ? COST_FACTOR : factor);
}
