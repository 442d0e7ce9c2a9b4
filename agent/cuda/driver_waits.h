/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait inside the CUDA driver. The driver polls while it waits, unless the context
 * says otherwise. A thread that only waits for the device therefore uses a whole core. We record
 * these waits for the daemon, which must not take such CPU time for work. The code that collects
 * Python stacks also reads the waits, because a thread's frames do not change during a wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/*
 * Notes the begin of a wait. Returns an index to pass to cw_driver_wait_leave(). Returns -1 if too
 * many threads wait at the same time, and then does not record the wait. Any thread, lock-free.
 */
int cw_driver_wait_enter(void);
void cw_driver_wait_leave(int place);

/* Returns the start of the thread's wait (ns of CLOCK_MONOTONIC); 0 = the thread does not wait. */
uint64_t cw_driver_wait_since(uint32_t tid);
