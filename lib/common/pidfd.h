/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of processes (pidfd_open(2), SO_PEERPIDFD). Unlike a pid, a pidfd never comes to mean
 * another process.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>

/* True if the process has ended, reaped or not; false for -1. Does not block. */
static inline bool cw_pidfd_has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&p, 1, 0) == 1;
}
