/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a process, such as a reader of stacks, step by step. A step ends at the entry to a system
 * call or the return from one. Between two such points, the process affects no other process.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct cw_stack_copy;

/*
 * Limit on the steps. A reader of stacks needs fewer for four threads. A test whose process runs on
 * proves nothing.
 */
#define TRACED_MAX_STEPS 2000

/*
 * Shows how a process ended, in place of a call's number. CUT_SHORT: by a SIGKILL that was not
 * ours.
 */
enum { TRACED_ENDED = -2, TRACED_CUT_SHORT = -3 };

/* Starts a process that is stopped before it does anything, and that we control from then on. */
pid_t traced_start(int (*run)(void *), void *arg);

/*
 * Lets the process run to the n-th entry to or return from a system call. Returns true, and
 * *ret_call is the number of the call that begins, or -1 for a return. Returns false if the process
 * ended before; *ret_call shows how it ended.
 */
bool traced_run(pid_t pid, unsigned n, long *ret_call);

/*
 * Returns a copy of the target's stacks with a budget of 20 s. A traced reader is slow, and the
 * machine may be busy. The fixture owns the copy, and frees it at the next call or when the test
 * ends.
 */
struct cw_stack_copy *traced_copy(void);
void traced_tear_down(void);
