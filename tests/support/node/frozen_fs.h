/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small file system that can be frozen: a process that writes to it then sleeps uninterruptibly,
 * as on a dead NFS server. We thaw and remove it when the test ends, however it ends.
 */
#pragma once

#include <stdbool.h>

struct frozen_fs {
	char dir[64];  /* mount point */
	char file[96]; /* to be written to */
	int fd;
	int guard_fd;
};

/* False if the machine cannot provide it: not root, no loop device, no mkfs.ext4. */
bool frozen_fs_mount(struct frozen_fs *fs);
bool frozen_fs_freeze(struct frozen_fs *fs);
void frozen_fs_thaw(struct frozen_fs *fs);
