/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the facts of /proc about one process, for the "proc" part of collwatch.evidence/1
 * (docs/schemas.md). This does not affect the process. We need only the right to read it. Some
 * facts (wchan, syscall, io) need the right to trace it. Without that right these facts are null,
 * and the status is "partial".
 *
 * Runs in a capture child: see daemon/kernel/procfs.h.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Returns the part as a new reference; NULL = out of memory. start_ticks: field 22 of stat, which
 * identifies the process together with pid. uid: the user that owns the process, as far as we know.
 * If this user may not see the program (daemon/kernel/procfs.h), the part has only facts that /proc
 * shows to every user. kernel_program: for cw_kernel_threads_read(); -1 = none. max_threads: limit
 * of the threads in the part, the main thread first; at most CW_PROCFS_MAX_THREADS.
 */
json_t *cw_procfacts(pid_t pid, uint64_t start_ticks, uid_t uid, int kernel_program,
		     unsigned max_threads);
