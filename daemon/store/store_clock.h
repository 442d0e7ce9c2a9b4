/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock by which bundles age. The wall clock alone is not enough. An administrator may set it a
 * month ahead, or a machine may boot with a wrong one. Then retention would remove all bundles at
 * once. So we read the wall clock once per boot, when the daemon has run for an hour in which it
 * can be corrected. From then on time passes by the monotonic clock. We store the difference of the
 * two in the state directory, for the next daemon of the same boot.
 *
 * Loop thread only; reads one short file, and writes one per boot.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

#define CW_STORE_CLOCK_SETTLES_NS (3600 * CW_NS_PER_S)

struct cw_store_clock {
	const struct cw_clock *clock;
	int state_fd;       /* borrowed */
	int64_t opened_ns;  /* monotonic */
	int64_t to_wall_ns; /* add it to monotonic time to get wall time; valid if is_settled */
	bool is_settled;
};

void cw_store_clock_open(struct cw_store_clock *c, int state_fd, const struct cw_clock *clock);
/*
 * Returns wall time in ns, for comparison with file times. False until a daemon of this boot has
 * run for an hour. Until then the time is that of the plain wall clock, and callers should not
 * remove anything for its age.
 */
bool cw_store_clock_now(struct cw_store_clock *c, int64_t *ret_ns);
