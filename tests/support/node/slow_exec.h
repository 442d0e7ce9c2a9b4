/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process in the middle of execve(2): it closes a descriptor whose file system is slow. The
 * kernel holds a lock of the process meanwhile, and a reader of some of its files in /proc waits.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct slow_exec {
	char dir[64]; /* mount point */
	int fuse_fd;
	pid_t pid; /* the process in execve(2) */
	pid_t server, guard;
	int guard_fd;
};

/* Returns once it is in execve(2). False: the machine cannot provide it (not root, no FUSE). */
bool slow_exec_start(struct slow_exec *s);
/* Lets it go on, then ends it. */
void slow_exec_stop(struct slow_exec *s);
