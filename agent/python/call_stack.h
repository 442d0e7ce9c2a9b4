/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stacks from which the program issues ops (docs/design/record.md#call-stacks): the
 * record's table of distinct stacks. Off unless COLLWATCH_CALL_STACKS=on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

extern bool cw_call_stacks_is_on;

/* Returns whether the environment turns call stacks on. */
bool cw_call_stacks_wanted(void);

/*
 * Turns call stacks on, if the environment requests them and the record has the table. Call this
 * function once, before the agent is armed.
 */
void cw_call_stacks_start(void);

/*
 * Call this function when a communicator exists. If the process has a Python interpreter, the
 * function queues a check of the interpreter's frame layout. Any thread.
 */
void cw_call_stacks_arm(void);

/*
 * Returns the record's number for the calling thread's stack, which is the stack's index + 1. 0 =
 * no stack, or the table is full. caller: the return address of the wrapper whose frame is in
 * cw_tls.frame; NULL = none. Any thread, lock-free, no allocation. Takes some microseconds, and
 * more for a new stack. Keeps errno.
 */
uint32_t cw_call_stack_take(const void *caller);
