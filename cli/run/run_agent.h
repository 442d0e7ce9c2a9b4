/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the agent into the environment of a program before `run` starts it. */
#pragma once

#include <limits.h>

#include "common/err.h"

/* Result: the program itself cannot load the agent, but its children can. */
#define RUN_AGENT_STATIC 1

/*
 * Adds the agent to LD_PRELOAD of this process, after testing it with the program. wanted: a path,
 * NULL = the agent of this installation. Fills `agent`. Returns 0, RUN_AGENT_STATIC or -errno; err
 * is set unless 0. RUN_AGENT_STATIC: the program itself is linked statically. -errno: nothing was
 * changed. Blocks.
 */
int cw_run_agent_load(const char *wanted, const char *program, char agent[PATH_MAX],
		      struct cw_err *err);
