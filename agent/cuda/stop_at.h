/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops the rank (SIGSTOP) when its own tensor summaries meet a condition that the user set:
 * COLLWATCH_STOP_AT=nonfinite, headroom or both, with a comma. The user can then examine the rank
 * with a debugger before the numbers are gone. Without the variable we start no thread and stop
 * nothing (docs/numerics.md#stopping-there).
 *
 * Every 20 ms a thread of the agent reads the new summaries of the device. No call of the program
 * waits for this thread. Each cause stops the rank once. Before the stop we store the cause in the
 * record (cw_rec_header.stopped_at), and the daemon reports it. SIGCONT lets the rank go on, and we
 * clear the cause.
 */
#pragma once

/* Reads COLLWATCH_STOP_AT. Call this function when the record exists. */
void cw_stop_at_start(void);
/*
 * Starts the thread on the first call. Call this function when a communicator exists. Any thread.
 */
void cw_stop_at_arm(void);
