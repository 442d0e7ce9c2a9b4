/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds mistyped variables of agent and command line before the program starts. The agent could
 * only ignore them, and the job would then run unwatched.
 */
#pragma once

#include <stdbool.h>

#include "common/err.h"

/*
 * Checks all variables of this process that begin with COLLWATCH_. Returns 0, or -EINVAL with err
 * set. -EINVAL: the name is close to a known one, or the variable does not accept the value. If a
 * name is close to no known one, it may belong to another program. We then only warn on standard
 * error.
 */
int run_environment_check(struct cw_err *err);

/* True if COLLWATCH_DISABLE turns the agent off. */
bool run_environment_is_disabled(void);

/*
 * Checks whether path is short enough for the name of a UNIX socket. Returns 0, or -EINVAL with err
 * set.
 */
int run_environment_check_socket(const char *what, const char *path, struct cw_err *err);
