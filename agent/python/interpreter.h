/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Python's interpreter lock lies. A thread that waits for it sleeps on a condition inside of
 * _PyRuntime, for 5 ms at a time, and looks from outside like one that waits for a queue with a
 * time-out; by the address the daemon knows (daemon/process/host_wait.h). Of subinterpreters with a
 * lock of their own (PEP 684) nothing is noted, and builds without a lock have none.
 *
 * From CPython 3.7 on the symbol is exported, and the lock is in it: _PyRuntime.ceval.gil,
 * from 3.12 on _PyRuntime._main_interpreter._gil (Include/internal/pycore_runtime.h,
 * pycore_interp.h).
 */
#pragma once

/* Notes it in the record, once. Any thread, when a communicator became ready; asks the loader. */
void cw_interpreter_note(void);
