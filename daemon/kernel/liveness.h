/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alive, stopped, traced or ended, and how it ended. The daemon is not the parent of the ranks, so
 * wait(2) is not open to it. Sources, best first:
 *
 * 1. PIDFD_GET_INFO with PIDFD_INFO_EXIT (Linux 6.15): the wait status of a process that was
 *    reaped by its parent, kept as long as somebody holds a pidfd from before the end.
 * 2. exit_code in /proc/PID/stat while it is a zombie. The kernel writes 0 there for strangers, so
 *    it counts only where the same file showed hidden fields while the process lived.
 * 3. Neither: it is gone and the kernel did not say how.
 *
 * Whose pidfd is readable has ended. A thread that is still dying or a parent that is slow to reap
 * can leave us without 1 and 2 for a moment: cw_liveness_end() says CW_LIVENESS_AGAIN, and the
 * caller asks again for at most CW_LIVENESS_PATIENCE_NS before it settles for 3.
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

/* Liveness of a process that has not ended, from its stat state letter. */
uint32_t cw_liveness_of_state(char state);

/*
 * How did it end? was_permitted: cw_procstat.is_permitted of the living process. 0 with *ret set,
 * or CW_LIVENESS_AGAIN.
 */
int cw_liveness_end(int pidfd, int proc_fd, bool was_permitted, struct cw_ending *ret);

/* Decodes a wait status. */
struct cw_ending cw_ending_of_status(int status);
