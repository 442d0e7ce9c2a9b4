/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/node/frozen_fs.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cleanup.h"

static void run_guard(struct frozen_fs *fs, int until_closed)
{
	char command[256], byte;

	/* The test runner kills the whole process group when it gives up, so we leave the group. */
	(void)setsid();
	while (read(until_closed, &byte, 1) > 0)
		;
	(void)ioctl(fs->fd, FITHAW, 0); /* fails if it is not frozen */
	(void)close(fs->fd);
	(void)snprintf(command, sizeof(command),
		       "umount -l %s >/dev/null 2>&1; rmdir %s; rm -f %s.img", fs->dir, fs->dir,
		       fs->dir);
	_exit(system(command) == 0 ? 0 : 1);
}

static bool start_guard(struct frozen_fs *fs)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)close(fds[1]);
		run_guard(fs, fds[0]);
	}
	(void)close(fds[0]);
	fs->guard_fd = fds[1];
	return pid > 0;
}

bool frozen_fs_mount(struct frozen_fs *fs)
{
	char command[512];

	(void)snprintf(fs->dir, sizeof(fs->dir), "/tmp/collwatch-frozen-XXXXXX");
	if (geteuid() != 0 || !mkdtemp(fs->dir))
		return false;
	(void)snprintf(fs->file, sizeof(fs->file), "%s/file", fs->dir);
	(void)snprintf(command, sizeof(command),
		       "PATH=$PATH:/usr/sbin:/sbin; truncate -s 4M %s.img && "
		       "mkfs.ext4 -q %s.img >/dev/null 2>&1 && mount -o loop %s.img %s 2>/dev/null",
		       fs->dir, fs->dir, fs->dir, fs->dir);
	if (system(command) != 0) {
		(void)snprintf(command, sizeof(command), "rm -rf %s.img %s", fs->dir, fs->dir);
		(void)!system(command);
		return false;
	}
	fs->fd = open(fs->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fs->fd >= 0 && start_guard(fs);
}

bool frozen_fs_freeze(struct frozen_fs *fs)
{
	return ioctl(fs->fd, FIFREEZE, 0) == 0;
}

void frozen_fs_thaw(struct frozen_fs *fs)
{
	(void)ioctl(fs->fd, FITHAW, 0); /* if this fails, the guard thaws it later */
}
