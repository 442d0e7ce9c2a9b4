/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests whether a program can load the agent, by running the program's own loader before the
 * program. Some loaders would end the program before main(): a musl loader, or one that lacks a
 * symbol version that the agent needs. The agent is built for glibc 2.28 and later, but a container
 * may have any libc.
 */
#pragma once

#include <stddef.h>

#define CW_TEST_LOAD_WHY 256

/*
 * preload: the value of LD_PRELOAD to test. agent: our entry in it.
 *
 * Returns 0 if the loader accepts the agent. Also returns 0 if there is no loader, because the
 * program is linked statically or does not exist. -ENOEXEC: the loader would end the program or
 * leave the agent out; why has the loader's own words.
 *
 * The program does not run. Its loader lists the libraries ("--list"), and loads /bin/true if that
 * has the same loader. Blocks for 10 s at most. Call it in a process with one thread, because it
 * forks.
 */
int cw_test_load(const char *program, const char *preload, const char *agent,
		 char why[CW_TEST_LOAD_WHY]);
