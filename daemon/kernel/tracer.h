/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the process that traces another one: a debugger, or any other user of ptrace(2). The tracer
 * chooses its name itself.
 *
 * Loop thread only; reads small files of procfs, which do not block.
 */
#pragma once

#include <stdbool.h>

#include "model/cause.h"

/*
 * Finds the tracer of the process whose /proc directory is proc_fd: CW_CAUSE_TRACED with its pid,
 * and with CW_END_BY_PROCESS, its user and its name if we may see it. False if the kernel shows no
 * tracer: there is none, or it is outside of the daemon's pid namespace.
 */
bool cw_tracer_find(int proc_fd, struct cw_cause *ret);
