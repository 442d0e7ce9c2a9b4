/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the facts of /proc about one process, as the "proc" part of collwatch.evidence/1
 * (docs/schemas.md). We do not touch the process, and need no right over it but the right to read.
 * Some facts (wchan, syscall, io) need more rights. Without them they are null, and the status is
 * "partial".
 *
 * Runs in a capture child: see daemon/kernel/procfs.h.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Returns a new reference; NULL only if out of memory. start_ticks is field 22 of stat and
 * identifies the process. kernel is the text from cw_kernel_threads_read(), or NULL. uid is the
 * claimed owner of the process. If this user may not see the program (daemon/kernel/procfs.h), we
 * report only facts that /proc shows to every user.
 */
json_t *cw_procfacts(pid_t pid, uint64_t start_ticks, uid_t uid, const char *kernel);
