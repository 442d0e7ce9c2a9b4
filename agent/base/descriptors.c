/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif
#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9; the same number on all architectures */
#endif
#define CLOSE_RANGE_UNSHARE_BIT 2u

#define FD_FLOOR 1000
#define FD_ROOM 16 /* more descriptors than the agent ever holds */

/*
 * Programs expect the lowest free numbers, so we move to FD_FLOOR, or as high as a lower
 * RLIMIT_NOFILE allows. During this call the program may close all descriptors and then reuse one
 * of our numbers for its own file. We therefore close a number only if it still is our object, and
 * leave the program's file open.
 */
int cw_fd_dup_high(int fd)
{
	struct cw_fd_identity id = { 0 };
	struct rlimit limit;
	int floor = FD_FLOOR, high;

	if (cw_fd_identify(fd, &id) < 0)
		return -EBADF;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FD_FLOOR + FD_ROOM)
		floor = (int)limit.rlim_cur - FD_ROOM;
	if (floor <= fd)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, floor);
	if (high < 0)
		return fd;
	if (cw_fd_is(fd, &id))
		(void)close(fd);
	if (cw_fd_is(high, &id))
		return high;
	(void)close(high);
	return -EBADF;
}

int cw_memfd(const char *name)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	long fd = syscall(SYS_memfd_create, name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_memfd_create, name, flags);
	return fd < 0 ? -errno : cw_fd_dup_high((int)fd);
}

/*
 * Makes the system call directly: fstat@GLIBC_2.33 would be the newest symbol that we need, and
 * older systems lack it.
 */
int cw_fd_identify(int fd, struct cw_fd_identity *ret_id)
{
	struct stat st;

	if (syscall(SYS_fstat, fd, &st) < 0)
		return -errno;
	ret_id->dev = st.st_dev;
	ret_id->ino = st.st_ino;
	return 0;
}

bool cw_fd_is(int fd, const struct cw_fd_identity *id)
{
	struct cw_fd_identity now = { 0 };

	return fd >= 0 && cw_fd_identify(fd, &now) == 0 && now.dev == id->dev && now.ino == id->ino;
}

/* ---- the helper thread's table ---- */

static bool is_own; /* only the helper thread uses it */

/*
 * Writes the path of a descriptor in the program's table. /proc/self is the process, and its fd
 * directory shows the table of the first thread, which is the program's table.
 */
static void path_of(int fd, char path[32])
{
	(void)snprintf(path, 32, "/proc/self/fd/%d", fd);
}

static bool leads_to(int fd, const struct cw_fd_identity *id)
{
	char path[32];
	struct stat st;

	path_of(fd, path);
	/* A direct system call: stat@GLIBC_2.33 would be the newest symbol that we need. */
	return syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 && st.st_dev == id->dev &&
	       st.st_ino == id->ino;
}

bool cw_fd_table_can_unshare(int needed, const struct cw_fd_identity *id)
{
	return leads_to(needed, id);
}

void cw_fd_table_unshare(void)
{
	/*
	 * The kernel copies only the descriptors below the closed range. The range begins at 0, so
	 * the new table starts empty.
	 */
	is_own = syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE_BIT) == 0;
}

int cw_fd_reopen(int fd, const struct cw_fd_identity *id, int flags)
{
	char path[32];
	int reached;

	if (!is_own)
		return cw_fd_is(fd, id) ? fd : -EBADF;
	if (fd < 0 || !leads_to(fd, id))
		return -EBADF;
	path_of(fd, path);
	reached = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (reached < 0)
		return -EBADF;
	if (cw_fd_is(reached, id))
		return reached;
	(void)close(reached);
	return -EBADF;
}

void cw_fd_release(int reached)
{
	if (is_own && reached >= 0)
		(void)close(reached);
}
