/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduces the stacks of one process to signatures that can be compared between ranks. A signature
 * has the names of the program's own functions, and the first function of a library that they call.
 * It has no addresses, and no frames inside of libraries: these differ between ranks that do the
 * same.
 *
 * The input is collwatch.evidence/1 and may be hostile. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* We make signatures of the main thread and of at most this many other threads. */
#define CW_STACK_SIGNATURES_MAX 16u

struct cw_stack_signature {
	/* Hash of the thread's name without digits. All main threads have the same value. */
	uint64_t role;
	bool is_main;
	uint64_t functions; /* equal for the same functions */
	uint64_t lines;     /* equal for the same functions and lines */
	char thread[32];    /* name of the thread; CW_STACK_MAIN for the main thread */
	/* The place for people: "read_sample (train.py:88), called by train (:505)". */
	char place[160];
};

/*
 * Writes the signatures of a process's threads with frames, the main thread first. Returns their
 * number, at most CW_STACK_SIGNATURES_MAX. We use native stacks only of threads without Python
 * frames. Without a stack of the main thread there are no signatures.
 */
size_t cw_stack_signatures_read(const json_t *evidence, struct cw_stack_signature *ret);
