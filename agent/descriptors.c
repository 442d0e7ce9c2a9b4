/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* the same on all architectures */
#endif
#define CLOSE_RANGE_UNSHARE_BIT 2u

static bool is_own; /* the helper thread's alone */

/* /proc/self is the process: its first thread's table, which is the program's. */
static void path_of(int fd, char path[32])
{
	(void)snprintf(path, 32, "/proc/self/fd/%d", fd);
}

static bool leads_to(int fd, const struct cw_fd_identity *id)
{
	char path[32];
	struct stat st;

	path_of(fd, path);
	/* The system call itself: stat@GLIBC_2.33 would be the newest symbol of the library. */
	return syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 && st.st_dev == id->dev &&
	       st.st_ino == id->ino;
}

bool cw_fd_can_leave_table(int needed, const struct cw_fd_identity *id)
{
	return leads_to(needed, id);
}

void cw_fd_leave_table(void)
{
	/* Unshares with nothing below the first number closed: with nothing at all. */
	is_own = syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE_BIT) == 0;
}

int cw_fd_reach(int fd, const struct cw_fd_identity *id, int flags)
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

void cw_fd_let_go(int reached)
{
	if (is_own && reached >= 0)
		(void)close(reached);
}
