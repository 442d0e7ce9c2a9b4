/* SPDX-License-Identifier: Apache-2.0 */
/* The agent, put into the environment of a program that is about to be run. */
#pragma once

#include <limits.h>

#include "common/err.h"

/* Only programs that it starts get the agent. */
#define RUN_AGENT_STATIC 1

/*
 * Changes LD_PRELOAD of this process. wanted: a path, NULL = the one of this installation. program
 * is tried out with it. Fills agent. 0; RUN_AGENT_STATIC with err set: the program itself is linked
 * statically; -errno with err set: nothing was changed. Blocks.
 */
int cw_run_agent_load(const char *wanted, const char *program, char agent[PATH_MAX],
		      struct cw_err *err);
