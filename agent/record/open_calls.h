/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the threads of this process that are inside an NCCL call. The Python frames of such a
 * thread do not change until the call returns. We read the process's own record, so a call costs
 * nothing extra when it begins or ends.
 *
 * Most open calls return the next moment. We therefore check each call once a second. A thread
 * counts only if we have seen its call open for a while. For an op in a group this time starts when
 * we first see the group launched, however long the op was queued before.
 *
 * Only the helper thread calls these functions. They allocate no memory and take no lock.
 */
#pragma once

#include <stdint.h>

/*
 * Reads the record again. Call this function once a second, and right before cw_open_calls_has().
 */
void cw_open_calls_step(void);

/*
 * Returns a number for the thread's open call. The call must have been open for two seconds or more
 * at the last step. No other call of the thread has this number. 0 = there is no such call.
 */
uint64_t cw_open_calls_has(uint32_t tid);
