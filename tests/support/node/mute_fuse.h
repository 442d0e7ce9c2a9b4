/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system with one regular file, "file". Its contents never come: a process that touches
 * a page of it waits, and even SIGKILL does not end it. Every user may open the file. A process of
 * its own serves the file, until the test ends, however it ends; then all readers get an error.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Of one part of the file; two that touch the same page wait in another way. */
#define MUTE_FUSE_PART (1u << 20)
#define MUTE_FUSE_PARTS 1024u

struct mute_fuse {
	char dir[160]; /* mount point: to be made, or, empty, one in /tmp */
	char file[176];
	pid_t server;
};

/* False if the machine cannot provide it: not root, or a kernel without FUSE. */
bool mute_fuse_mount(struct mute_fuse *fs);
void mute_fuse_end(struct mute_fuse *fs);

/*
 * Runs fn on a stack above which lies a part of the file: a copy of the stack comes to its pages.
 * False: the file cannot be mapped.
 */
bool mute_fuse_run_below(const char *file, unsigned part, void (*fn)(void *user), void *user);
