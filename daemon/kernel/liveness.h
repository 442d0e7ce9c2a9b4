/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a process is alive, stopped, traced or ended, and how it ended. The daemon is
 * not the parent of the ranks, so it cannot use wait(2). We use three sources, the best one first:
 *
 * 1. PIDFD_GET_INFO with PIDFD_INFO_EXIT (Linux 6.15) returns the wait status, after the parent has
 *    reaped the process. The kernel keeps it for pidfds that were opened before the end.
 * 2. exit_code in /proc/PID/stat has the wait status while the process is a zombie. Without the
 *    right to trace the process, the kernel shows 0. So we use it only if this file showed hidden
 *    fields while the process lived.
 * 3. Nothing: the process is gone, and the kernel did not say how it ended.
 *
 * A process has ended if its pidfd is readable. Sources 1 and 2 may be empty for a moment, because
 * a thread is still dying or the parent is slow to reap. Then cw_liveness_end() returns
 * CW_LIVENESS_AGAIN. The caller tries again for at most CW_LIVENESS_PATIENCE_NS before it accepts
 * source 3.
 *
 * Any thread; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/kernel/procstat.h"
#include "model/death.h"

#define CW_LIVENESS_PATIENCE_NS INT64_C(1000000000)

enum cw_liveness_result {
	CW_LIVENESS_AGAIN = 1,
};

/* Converts the state letter in stat of a process that has not ended to an enum cw_liveness. */
uint32_t cw_liveness_of_state(char state);

/*
 * Finds out how the process ended. was_permitted: cw_procstat.is_permitted, read while the process
 * lived. Returns 0 with *ret set, or CW_LIVENESS_AGAIN.
 */
int cw_liveness_end(int pidfd, int proc_fd, bool was_permitted, struct cw_ending *ret);

/* Converts a wait status, as from wait(2). */
struct cw_ending cw_ending_of_status(int status);
