/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the agent into the environment of a program before `run` starts it. */
#pragma once

#include <limits.h>

#include "common/err.h"

/* The program itself cannot load the agent, because it is linked statically. Its children can. */
#define RUN_AGENT_STATIC 1

/*
 * Tests the agent with the program's loader, and then adds it to LD_PRELOAD of this process.
 * wanted: the agent's path; NULL = the agent of this installation. Fills `agent` with the path.
 * Returns 0, RUN_AGENT_STATIC or -errno; if it is not 0, err has the reason. After -errno the
 * environment is unchanged. Blocks.
 */
int cw_run_agent_load(const char *wanted, const char *program, char agent[PATH_MAX],
		      struct cw_err *err);
