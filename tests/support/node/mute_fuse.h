/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system with one regular file, "file", whose contents never arrive. A process that
 * touches a page of it waits, and even SIGKILL does not end it. Every user may open the file. A
 * separate process serves the file until the test ends for any reason. Then all readers get an
 * error.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Bytes of one part of the file. Each process should use its own part: two that touch the same page
 * wait in another way.
 */
#define MUTE_FUSE_PART (1u << 20)
#define MUTE_FUSE_PARTS 1024u

struct mute_fuse {
	char dir[160]; /* mount point, which we make; empty = make one in /tmp */
	char file[176];
	pid_t server;
};

/*
 * Mounts the file system. Returns false if the machine cannot provide it: not root, or a kernel
 * without FUSE.
 */
bool mute_fuse_mount(struct mute_fuse *fs);
void mute_fuse_end(struct mute_fuse *fs);

/*
 * Runs fn on a stack with a part of the file above it. A process that copies the stack then touches
 * the file's pages. Returns false if we cannot map the file.
 */
bool mute_fuse_run_below(const char *file, unsigned part, void (*fn)(void *user), void *user);
