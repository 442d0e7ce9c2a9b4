/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a process is alive, stopped, traced or ended, and how it ended. The daemon is
 * not the parent of the ranks, so it cannot use wait(2). We use these sources, the best first:
 *
 * 1. PIDFD_GET_INFO with PIDFD_INFO_EXIT (Linux 6.15) returns the wait status of a process that its
 *    parent has reaped. The kernel keeps it for pidfds opened before the end.
 * 2. exit_code in /proc/PID/stat, while the process is a zombie. The kernel shows 0 to strangers,
 *    so we use it only if the same file showed hidden fields while the process lived.
 * 3. Neither: the process is gone and the kernel did not say how.
 *
 * A process has ended once its pidfd is readable. If a thread is still dying, or the parent is slow
 * to reap, 1 and 2 may be missing for a moment. Then cw_liveness_end() returns CW_LIVENESS_AGAIN.
 * The caller retries for at most CW_LIVENESS_PATIENCE_NS before it accepts 3.
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

/* Returns the liveness of a process that has not ended, from the state letter in its stat. */
uint32_t cw_liveness_of_state(char state);

/*
 * Finds out how the process ended. was_permitted is cw_procstat.is_permitted from when the process
 * lived. Returns 0 with *ret set, or CW_LIVENESS_AGAIN.
 */
int cw_liveness_end(int pidfd, int proc_fd, bool was_permitted, struct cw_ending *ret);

/* Decodes a wait status. */
struct cw_ending cw_ending_of_status(int status);
