/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock that tells the age of bundles. The wall clock alone is not enough. An administrator may
 * set it a month ahead, or a machine may boot with a wrong time. By such a clock we would remove
 * all bundles at once. So we read the wall clock only once per boot, after the daemon has run for
 * an hour. In this hour a wrong clock can be corrected. From then on we add the monotonic time. The
 * state directory has the difference of the two clocks, for later daemons of the same boot.
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
	int state_fd;       /* descriptor of the state directory; borrowed */
	int64_t opened_ns;  /* monotonic time of cw_store_clock_open() */
	int64_t to_wall_ns; /* wall time minus monotonic time; valid if is_settled */
	bool is_settled;
};

void cw_store_clock_open(struct cw_store_clock *c, int state_fd, const struct cw_clock *clock);
/*
 * Stores the wall time in ns, for comparison with the times of files. Returns false until a daemon
 * of this boot has run for an hour. The time is then that of the plain wall clock, and the caller
 * should remove nothing because of its age.
 */
bool cw_store_clock_now(struct cw_store_clock *c, int64_t *ret_ns);
