/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock by which bundles age. The wall clock alone will not do: somebody sets it a month ahead,
 * or a machine comes up with a wrong one, and all that is kept would be gone at once. So the wall
 * clock is asked once per boot, when it has had an hour to be put right, and from then on time
 * passes as the monotonic clock says. The difference of the two is kept in the state directory, for
 * the next daemon of the same boot.
 *
 * Loop thread only; one short file is read, and one written per boot.
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
	int64_t to_wall_ns; /* to be added to monotonic time, once settled */
	bool is_settled;
};

void cw_store_clock_open(struct cw_store_clock *c, int state_fd, const struct cw_clock *clock);
/*
 * Wall time in ns for comparisons with the times of files. Before an hour has passed in this boot,
 * false: then it is what the wall clock says, and nothing should be removed for its age.
 */
bool cw_store_clock_now(struct cw_store_clock *c, int64_t *ret_ns);
