/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait inside the CUDA driver: it polls while it waits, unless the context says
 * otherwise, so that a thread which only waits for the device uses a whole core. Noted in the
 * record, where the daemon tells them from threads that work, and read by those who ask the
 * interpreter for stacks: the frames of a thread that waits there hold still.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/* Any thread, lock-free. Return: a place, or -1 where all are taken: then nothing is noted. */
int cw_driver_wait_enter(void);
void cw_driver_wait_leave(int place);

/* Since when the thread has waited there (ns of CLOCK_MONOTONIC); 0 = it does not. */
uint64_t cw_driver_wait_since(uint32_t tid);
