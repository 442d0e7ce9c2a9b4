/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program and stays beside it: passes signals on, marks its output, ends as it does. What
 * `collwatch run` needs when it cannot simply become the program.
 */
#pragma once

#include <sys/types.h>

struct run_child {
	char **command;
	const char
		*prefix; /* put before each line of both streams; NULL = streams are left alone */
	/* Called about once a second while the program runs; may be NULL. */
	void (*on_second)(void *user);
	void *user;
};

/*
 * Blocks until the program has ended. Returns its wait status, or -errno when it could not be
 * started at all. A program that cannot be executed ends with 127, after saying so.
 */
int cw_run_child(const struct run_child *child);

/* Ends this process as that status says: the same exit status, or the same signal. */
void run_end_like(int wait_status) __attribute__((noreturn));
