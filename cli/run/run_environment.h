/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables for agent and command line that were mistyped: found before the program starts, because
 * the agent can only ignore them, and the job would run unwatched.
 */
#pragma once

#include <stdbool.h>

#include "common/err.h"

/*
 * Looks at all variables of this process that begin with COLLWATCH_. 0, or -EINVAL with err set: a
 * name that is near to one there is, or a value that its variable does not take. A name that is
 * near to none may be another program's: it is named on standard error.
 */
int run_environment_check(struct cw_err *err);

/* Whether COLLWATCH_DISABLE keeps the agent from doing anything. */
bool run_environment_is_disabled(void);

/* Whether path is short enough for the name of a UNIX socket. 0, or -EINVAL with err set. */
int run_environment_check_socket(const char *what, const char *path, struct cw_err *err);
