/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child with a deadline, for a command that has no event loop. With a loop, use loop/children.h.
 * Blocks until the child has ended, or until shortly after the deadline.
 * Call it in a process with one thread, because it forks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_blocking_child {
	/* Runs in the child, and may execute a program. Returns the exit status. */
	int (*main)(int out_fd, const void *arg);
	const void *arg;
	int64_t timeout_ns;
};

/*
 * Runs the child and stores its output and its status from waitpid(). Returns 0; -ETIMEDOUT if we
 * had to kill it, with the output so far; or another -errno, if there was no child. Drops output
 * beyond size.
 */
int cw_blocking_child_run(const struct cw_blocking_child *child, char *buf, size_t size,
			  size_t *ret_len, int *ret_status);
