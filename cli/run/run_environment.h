/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds mistyped variables of agent and command line before the program starts. The agent could
 * only ignore them, and the job would run unwatched.
 */
#pragma once

#include <stdbool.h>

#include "common/err.h"

/*
 * Checks all variables of this process that begin with COLLWATCH_. 0, or -EINVAL with err set: the
 * name is close to a known one, or the variable does not take the value. A name that is close to
 * none may belong to another program: we only warn about it on standard error.
 */
int run_environment_check(struct cw_err *err);

/* True if COLLWATCH_DISABLE turns the agent off. */
bool run_environment_is_disabled(void);

/* Whether path is short enough for the name of a UNIX socket. 0, or -EINVAL with err set. */
int run_environment_check_socket(const char *what, const char *path, struct cw_err *err);
