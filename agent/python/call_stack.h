/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From where ops are issued (docs/design/record.md#call-stacks): the record's table of distinct
 * call stacks. Off unless COLLWATCH_CALL_STACKS=on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

extern bool cw_call_stacks_is_on;

/* Whether the environment asks for it. */
bool cw_call_stacks_wanted(void);

/* From here on stacks are taken, if the record has the table. Once, before the agent is armed. */
void cw_call_stacks_start(void);

/* A communicator exists: an interpreter, if there is one, is asked about its frames. Any thread. */
void cw_call_stacks_arm(void);

/*
 * The calling thread's stack, as the record knows it: index + 1, 0 = none, or no place for it.
 * caller: the return address of the wrapper whose frame is in cw_tls.frame, NULL = none. Any
 * thread, lock-free, no allocation; some microseconds, more for a stack that is new; errno is kept.
 */
uint32_t cw_call_stack_take(const void *caller);
