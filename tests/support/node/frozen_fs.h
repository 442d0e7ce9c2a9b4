/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small file system that the test can freeze. A process that writes to it then sleeps
 * uninterruptibly, as on a dead NFS server. A guard process thaws and removes it when the test ends
 * for any reason.
 */
#pragma once

#include <stdbool.h>

struct frozen_fs {
	char dir[64];  /* mount point */
	char file[96]; /* path of a file for tests to write to */
	int fd;
	int guard_fd;
};

/* False if the machine cannot provide it: not root, no loop device, no mkfs.ext4. */
bool frozen_fs_mount(struct frozen_fs *fs);
bool frozen_fs_freeze(struct frozen_fs *fs);
void frozen_fs_thaw(struct frozen_fs *fs);
