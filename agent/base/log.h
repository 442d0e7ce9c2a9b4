/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnostics of the agent. The agent is silent unless COLLWATCH_LOG names a file, to which it
 * appends its lines. The file must be a regular file that the user owns, and no link. The agent
 * never writes to stdout, and writes to stderr only if the variable names /dev/stderr.
 */
#pragma once

/*
 * Reads COLLWATCH_LOG once. A thread of the application must call this function before any other
 * thread logs.
 */
void cw_log_start(void);

/* Appends one line and its newline to the log. Any thread, but not on the hot path. Keeps errno. */
void cw_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
