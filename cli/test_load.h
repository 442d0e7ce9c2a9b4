/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests whether a program can load the agent, before the program runs, by asking its own loader. A
 * loader that lacks a symbol version the agent needs, or a musl loader, would end the program
 * before main(). The agent is built for glibc 2.28 and later; a container may have any libc.
 */
#pragma once

#include <stddef.h>

#define CW_TEST_LOAD_WHY 256

/*
 * preload: the value of LD_PRELOAD to test; agent: our entry in it. 0: the loader accepts it, or
 * there is no loader to ask (the program is linked statically, or does not exist). -ENOEXEC: the
 * loader would end the program or leave the agent out; why has the loader's own words. The program
 * does not run: its loader lists the libraries ("--list"), and loads /bin/true if that has the same
 * loader. Blocking, for 10 s at most. Not for threads: forks.
 */
int cw_test_load(const char *program, const char *preload, const char *agent,
		 char why[CW_TEST_LOAD_WHY]);
