/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of any tensor, on a program's request (python/collwatch/torch). The kernel is the one
 * that summarises the inputs of collectives, but it writes its result to the program's own memory.
 * The record contains nothing about it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/*
 * Returns whether the program has requested statistics. The next communicator to become ready then
 * loads the kernels.
 */
bool cw_tensor_stats_are_wanted(void);

/*
 * Exported. Loads the kernel into the current context. Returns false if that is impossible now; the
 * next communicator of the context then loads the kernel (without COLLWATCH_PROGRESS=off). A load
 * can block behind an NCCL kernel that waits for its peers. Call this function before training,
 * while the device is idle. Any thread; keeps errno.
 */
CW_EXPORT bool collwatch_tensor_stats_load(void);

/*
 * Exported. Launches the kernel on the stream, which must belong to the current context. The tensor
 * has `elements` contiguous elements from data on. Its dtype (enum ncclDataType_t) must be floating
 * point; for other types we return false. The kernel stores struct cw_sum_tensor_stats in *out,
 * which is device memory. Later work on the stream can read *out. We also return false if we
 * launched nothing for another reason, for example because the stream is in a capture. Both
 * addresses must be the device's; we do not check them. Any thread, does not block, keeps errno.
 */
CW_EXPORT bool collwatch_tensor_stats(uint64_t data, uint64_t elements, int dtype, void *stream,
				      uint64_t out);
