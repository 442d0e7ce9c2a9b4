/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function of a missing NVIDIA library: it prints its name and fails. Every such library has
 * status codes; 0 is success, and 1 is not.
 */
#pragma once

#include <stdio.h>

#define ABSENT(name)                                                                               \
	int name(void);                                                                            \
	int name(void)                                                                             \
	{                                                                                          \
		fprintf(stderr, "laboratory: %s is not there: no library of NVIDIA's is\n",        \
			#name);                                                                    \
		return 1;                                                                          \
	}
/* The text of a status. */
#define ABSENT_TEXT(name)                                                                          \
	const char *name(void);                                                                    \
	const char *name(void)                                                                     \
	{                                                                                          \
		return "not there: no library of NVIDIA's is";                                     \
	}
