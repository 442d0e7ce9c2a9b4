/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of this process that are inside an NCCL call, found in its own record: nothing is noted
 * for it when a call begins or ends. Their Python frames hold still, for as long as the call does
 * not return.
 *
 * A call that is open now may return the next moment, and most do. So each thread is watched from
 * beat to beat, and counts only once its call has been seen open for a while; of an op in a group
 * that is from when the group was seen launched, however long it was queued before.
 *
 * The helper thread only; no allocation, no lock.
 */
#pragma once

#include <stdint.h>

/* Looks at the record anew. Once a second, and right before an answer is needed. */
void cw_open_calls_step(void);

/*
 * Which call, as of the last step, the thread had been inside of for two seconds or more: a number
 * that no other call of the thread has. 0 = none.
 */
uint64_t cw_open_calls_has(uint32_t tid);
