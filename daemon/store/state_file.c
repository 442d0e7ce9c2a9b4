/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

int cw_state_file_open(int dir_fd, const char *name)
{
	/*
	 * Use O_NONBLOCK, because open() would wait for the other end of a FIFO. We check the type
	 * below.
	 */
	_cleanup_(closep) int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? steal_fd(&fd) : -EINVAL;
}

int cw_state_file_create(int dir_fd, const char *name)
{
	int fd;

	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT &&
	    (errno != EISDIR || unlinkat(dir_fd, name, AT_REMOVEDIR) < 0))
		return -errno;
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	return fd < 0 ? -errno : fd;
}
