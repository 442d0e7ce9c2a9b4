/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the process that traces another one: a debugger, or any other user of ptrace(2). The
 * process chooses its name itself.
 *
 * Loop thread only; reads small files of procfs, which do not block.
 */
#pragma once

#include <stddef.h>

/*
 * "held by gdb (pid 4242, root)" for the process whose /proc directory this is. "" = the kernel
 * shows no tracer: there is none, or it is outside of the daemon's pid namespace.
 */
void cw_tracer_say(int proc_fd, char *buf, size_t len);
