/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnostics of the agent: silent unless COLLWATCH_LOG names a file, to which lines are appended:
 * a plain file of the user's, no link. Never stdout; stderr only where it names /dev/stderr.
 */
#pragma once

/* Reads the environment, once; from a thread of the application, before any other thread logs. */
void cw_log_start(void);

/* Any thread, not for the hot path; keeps errno. A newline is added. */
void cw_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
