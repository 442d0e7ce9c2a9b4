/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds mistyped variables of the agent and the command line before the program starts. The agent
 * could only ignore such a variable, and the job would run unwatched.
 */
#pragma once

#include <stdbool.h>

#include "common/err.h"

/*
 * Checks all variables of this process that begin with COLLWATCH_. Returns 0, or -EINVAL with err
 * set: a name is close to a known one, or a variable does not accept its value. A name that is
 * close to no known one may belong to another program, so we only warn about it on standard error.
 */
int run_environment_check(struct cw_err *err);

/* True if COLLWATCH or COLLWATCH_DISABLE turns the agent off. */
bool run_environment_is_disabled(void);

/*
 * Checks whether path is short enough for the name of a UNIX socket. Returns 0, or -EINVAL with err
 * set.
 */
int run_environment_check_socket(const char *what, const char *path, struct cw_err *err);
