/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait inside the CUDA driver. The driver polls while it waits, unless the context
 * says otherwise, so a thread that only waits for the device uses a whole core. We record these
 * waits for the daemon, which must not count such a thread as working. The code that collects
 * Python stacks also reads them, because a thread's frames do not change while it waits there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/*
 * Any thread, lock-free. Returns a place, or -1 if all places are taken. With -1 the wait is not
 * recorded.
 */
int cw_driver_wait_enter(void);
void cw_driver_wait_leave(int place);

/* Returns the start of the thread's wait (ns of CLOCK_MONOTONIC); 0 = the thread is not waiting. */
uint64_t cw_driver_wait_since(uint32_t tid);
