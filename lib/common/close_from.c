/* SPDX-License-Identifier: Apache-2.0 */
#include "common/close_from.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/parse.h"

/*
 * Reads the directory once and closes all listed descriptors from first on. A close may move
 * entries that we have not read yet, so the caller must repeat the call until it closes none.
 * Returns the number of closed descriptors, or -errno.
 */
static int close_listed(int dir_fd, int first)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct dirent64))));
	int closed = 0;
	long n;

	if (lseek(dir_fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, dir_fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(buf + at);
			uint64_t fd;

			at += d->d_reclen;
			if (cw_parse_u64(d->d_name, (uint64_t)first, INT32_MAX, &fd) < 0 ||
			    (int)fd == dir_fd)
				continue;
			(void)close((int)fd); /* the descriptor is gone even if close() fails */
			closed++;
		}
	}
	return n < 0 ? -errno : closed;
}

int cw_close_from(int first)
{
	_cleanup_(closep) int dir_fd = -1;
	int r;

	/*
	 * EPERM comes from sandboxes that are older than close_range(). They refuse all system
	 * calls that they do not know.
	 */
	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	dir_fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	do {
		r = close_listed(dir_fd, first);
	} while (r > 0);
	return r;
}
