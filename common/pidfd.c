/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pidfd.h"

#include <poll.h>

bool cw_pidfd_has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&p, 1, 0) == 1;
}
