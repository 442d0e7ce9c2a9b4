/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops the rank (SIGSTOP) when its own tensor summaries show what its user waits for, so that
 * somebody can look at it with a debugger before the numbers are gone: COLLWATCH_STOP_AT=nonfinite,
 * headroom or both, with a comma. Nothing of this is there unless that is set
 * (docs/numerics.md#stopping-there).
 *
 * A thread of its own looks at the summaries that the device has written since, every 20 ms; no
 * call of the program's waits for it. Each cause stops the rank once. Before that the record says
 * so (cw_rec_header.stopped_at), for the daemon to tell; SIGCONT lets the rank go on, and ends it.
 */
#pragma once

/* The record is there. Reads the environment. */
void cw_stop_at_start(void);
/* A communicator exists: starts the thread, the first time. Any thread. */
void cw_stop_at_arm(void);
