/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the agent can be loaded into a program, asked of the program's own loader before the
 * program runs: a loader that lacks a version of a symbol the agent needs, or a musl, ends the
 * program before main(). The agent is built for glibc 2.28 and later; containers bring what they
 * like.
 */
#pragma once

#include <stddef.h>

#define CW_TEST_LOAD_WHY 256

/*
 * preload: the value of LD_PRELOAD to try; agent: the entry of it that is ours. 0: the loader takes
 * it, or there is no loader to ask (a program that is linked statically, or is not there).
 * -ENOEXEC: it would end the program or leave the agent out; why says so in the loader's own words.
 * The program is not run: its loader lists the libraries ("--list"), and loads /bin/true, where
 * that has the same loader. Blocking, for 10 s at most. Not for threads: forks.
 */
int cw_test_load(const char *program, const char *preload, const char *agent,
		 char why[CW_TEST_LOAD_WHY]);
