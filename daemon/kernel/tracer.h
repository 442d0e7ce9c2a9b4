/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the process that traces another one: a debugger, or any other user of ptrace(2). The tracer
 * chooses its name itself.
 *
 * Loop thread only; reads small files of procfs, which do not block.
 */
#pragma once

#include <stddef.h>

/*
 * Writes the tracer, as in "held by gdb (pid 4242, root)", of the process whose /proc directory is
 * proc_fd. "" = the kernel shows no tracer: there is none, or it is outside of the daemon's pid
 * namespace.
 */
void cw_tracer_say(int proc_fd, char *buf, size_t len);
