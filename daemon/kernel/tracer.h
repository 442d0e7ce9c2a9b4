/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the process that traces another one: a debugger, or any other user of ptrace(2). We report
 * the tracer's name, which the tracer itself can choose.
 *
 * Loop thread only; reads small files of procfs, which do not block.
 */
#pragma once

#include <stdbool.h>

#include "model/cause.h"

/*
 * Finds the tracer of the process whose /proc directory is proc_fd. Stores CW_CAUSE_TRACED with the
 * tracer's pid in *ret. If we may see the tracer, it also has CW_END_BY_PROCESS with user and name.
 * Returns false if the kernel shows no tracer: there is none, or it is outside of the daemon's pid
 * namespace.
 */
bool cw_tracer_find(int proc_fd, struct cw_cause *ret);
