/* SPDX-License-Identifier: Apache-2.0 */
/* A FUSE file system whose server reads no request, not even the first. */
#include "tests/support/node/hung_fs.h"

#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

static int fuse_fd = -1;

bool hung_fs_mount(const char *dir)
{
	char options[64];

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0",
		       fuse_fd);
	return fuse_fd >= 0 && mount("hung", dir, "fuse", MS_NOSUID | MS_NODEV, options) == 0;
}

void hung_fs_unmount(const char *dir)
{
	(void)close(fuse_fd); /* ends the connection, and with it every waiting request */
	(void)umount2(dir, MNT_DETACH);
}
