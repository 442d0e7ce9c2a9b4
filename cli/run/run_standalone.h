/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private daemon for one `collwatch run --standalone`: for users on a machine where nobody runs
 * collwatchd. It sees the ranks on this node only. Sockets, state and log lie in a directory of its
 * own, which stays when a hang was found and goes otherwise.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "common/err.h"

struct run_standalone {
	char dir[PATH_MAX];
	pid_t daemon;
	unsigned n_told; /* incidents that were printed */
};

/* Starts it and waits until it answers. 0, or -errno with err set: then nothing is left behind. */
int run_standalone_start(struct run_standalone *s, struct cw_err *err);
/* Prints what was found since the last call, on standard error. */
void run_standalone_tell(struct run_standalone *s);
/* Stops it; says where the bundles are, or removes the directory. */
void run_standalone_stop(struct run_standalone *s);
