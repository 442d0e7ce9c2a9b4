/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process in the middle of execve(2), which closes a descriptor on a slow file system. The kernel
 * holds a lock of the process meanwhile, so a reader of some of its files in /proc waits.
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

/*
 * Starts the process. Returns true once it is in execve(2), and false if the machine cannot provide
 * it (not root, no FUSE).
 */
bool slow_exec_start(struct slow_exec *s);
/* Lets the process go on, then ends it. */
void slow_exec_stop(struct slow_exec *s);
