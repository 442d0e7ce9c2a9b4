/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the facts of /proc about one process, as the "proc" part of collwatch.evidence/1
 * (docs/schemas.md). We only need the right to read, no other right over the process, and do not
 * touch it. Facts without permission (wchan, syscall, io need more rights) are null, and the status
 * is "partial".
 *
 * Runs in a capture child: see daemon/kernel/procfs.h.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * New reference; NULL only if out of memory. start_ticks: field 22 of stat, identity. kernel:
 * text from cw_kernel_threads_read(); may be NULL. uid: the claimed owner of the process. If this
 * user may not see the program (daemon/kernel/procfs.h), we only report facts that /proc shows to
 * every user.
 */
json_t *cw_procfacts(pid_t pid, uint64_t start_ticks, uid_t uid, const char *kernel);
