/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of Python's interpreter lock. A thread that waits for the lock sleeps on a condition
 * inside _PyRuntime, for 5 ms at a time. From outside, such a thread looks like one that waits for
 * a queue with a time-out. By the address, the daemon distinguishes the two
 * (daemon/process/host_wait.h). We record nothing about subinterpreters with their own lock (PEP
 * 684). Builds without a lock have no such address.
 *
 * CPython exports the symbol _PyRuntime from 3.7 on, and the symbol contains the lock:
 * _PyRuntime.ceval.gil, from 3.12 on _PyRuntime._main_interpreter._gil
 * (Include/internal/pycore_runtime.h, pycore_interp.h).
 */
#pragma once

/*
 * Stores the address of Python's interpreter lock in the record, once. Call this function when a
 * communicator became ready. Any thread; calls the loader.
 */
void cw_interpreter_note(void);
