/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says about one process, as the "proc" part of collwatch.evidence/1 (docs/schemas.md):
 * needs no right over the process but being allowed to read, and does not touch it. What may not be
 * read (wchan, syscall, io need more rights) is null, and the status "partial" says so.
 *
 * Runs in a capture child: see daemon/kernel/procfs.h.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * New reference, never NULL but when out of memory. start_ticks: field 22 of stat, identity.
 * kernel: what cw_kernel_threads_read() gave; may be NULL. uid: whose process it is said to be; of
 * a program that is not his to see (daemon/kernel/procfs.h) there is what /proc tells everybody.
 */
json_t *cw_procfacts(pid_t pid, uint64_t start_ticks, uid_t uid, const char *kernel);
