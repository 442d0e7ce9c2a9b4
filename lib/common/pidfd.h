/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of processes (pidfd_open(2), SO_PEERPIDFD). The kernel may reuse a pid for another
 * process, but a pidfd always belongs to the same process.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>

/*
 * Returns whether the process has ended; its parent need not have reaped it. Returns false for -1.
 * Does not block.
 */
static inline bool cw_pidfd_has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&p, 1, 0) == 1;
}
