/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the agent into the environment of a program before `run` starts it. */
#pragma once

#include <limits.h>

#include "common/err.h"

/* Only the children of the program get the agent. */
#define RUN_AGENT_STATIC 1

/*
 * Changes LD_PRELOAD of this process, after testing it with program. wanted: a path, NULL = the
 * agent of this installation. Fills agent. 0; RUN_AGENT_STATIC with err set: the program itself is
 * linked statically; -errno with err set: nothing was changed. Blocks.
 */
int cw_run_agent_load(const char *wanted, const char *program, char agent[PATH_MAX],
		      struct cw_err *err);
