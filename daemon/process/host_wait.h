/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In what the first thread of a process sleeps: enum cw_host_wait, as far as the kernel shows it.
 * /proc/PID/syscall names the call and its descriptor, the process's table of descriptors what that
 * is. Told are calls that wait for one socket or terminal without a time; of all others nothing is
 * known, nor of a process into which this one may not look (that needs the right to trace it).
 *
 * Any thread; the reads do not block.
 */
#pragma once

#include <stddef.h>

/* proc_fd: of /proc/PID. CW_HOST_WAIT_UNKNOWN, _SOCKET or _TTY. */
unsigned cw_host_wait_look(int proc_fd);

/* Pure: the descriptor that the line of /proc/PID/syscall waits on; -1 = on none, or not known. */
int cw_host_wait_fd(const char *line);
/* Pure: what a link of /proc/PID/fd says of it. */
unsigned cw_host_wait_of(const char *link);
