/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program as a child process, passes signals to it, and prefixes its output. This process
 * then ends as the program did. `collwatch run` needs this when it cannot replace itself by the
 * program.
 */
#pragma once

#include <sys/types.h>

struct run_child {
	char **command;
	const char
		*prefix; /* text before each line of both streams; NULL = leave the streams alone */
	/* Called about once a second while the program runs; may be NULL. */
	void (*on_second)(void *user);
	void *user;
};

/*
 * Runs the program and blocks until it has ended. Returns its wait status, or -errno if we could
 * not start it. If exec fails, the child prints the reason and ends with 127.
 */
int cw_run_child(const struct run_child *child);

/*
 * Ends this process in the same way as the program: with the same exit status, or by the same
 * signal.
 */
void run_end_like(int wait_status) __attribute__((noreturn));
