/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a process, such as a taker of stacks, from one system call to the next. Between two calls it
 * affects no other process.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct cw_stack_copy;

/* More than a taker needs for four threads: a test without an end proves nothing. */
#define TRACED_MAX_STEPS 2000

/* How a process ended, in place of the number of a call. CUT_SHORT: by SIGKILL, not ours. */
enum { TRACED_ENDED = -2, TRACED_CUT_SHORT = -3 };

/* Stopped before it does anything, and under our control from then on. */
pid_t traced_start(int (*run)(void *), void *arg);

/*
 * Lets it run to its n-th entry to or return from a system call. False: it has ended before, and
 * *ret_call says how. Else *ret_call is the number of the call it is about to make, -1 = it
 * returned from one.
 */
bool traced_run(pid_t pid, unsigned n, long *ret_call);

/*
 * Of the target, for takers that are slow because they are traced, on a machine that may be busy.
 * The fixture owns the copy, and frees it at the next call or when it is torn down.
 */
struct cw_stack_copy *traced_copy(void);
void traced_tear_down(void);
