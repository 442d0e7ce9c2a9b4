/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process in the middle of execve(2): it closes a descriptor whose file system takes its time.
 * The kernel holds a lock of the process meanwhile, and who reads some of its files in /proc waits.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct slow_exec {
	char dir[64]; /* mount point */
	int fuse_fd;
	pid_t pid; /* who executes */
	pid_t server, guard;
	int guard_fd;
};

/* Returns when it is there. False: not to be had (not root, no FUSE). */
bool slow_exec_start(struct slow_exec *s);
/* Lets it go on, then ends it. */
void slow_exec_stop(struct slow_exec *s);
