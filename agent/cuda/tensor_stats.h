/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of any tensor, on a program's request (python/collwatch/torch). We run the kernel that
 * summarises the inputs of collectives, and it writes its result to the program's own memory. We
 * record nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/state.h"

/*
 * True if the program has asked for statistics. The next communicator to become ready then loads
 * the kernels.
 */
bool cw_tensor_stats_are_wanted(void);

/*
 * Exported. Loads the kernel into the current context. Returns false if the kernel is not there
 * yet. The next communicator of the context then loads it (without COLLWATCH_PROGRESS=off). A load
 * can block behind an NCCL kernel that waits for its peers. So call this before training, while the
 * device is idle. Any thread; keeps errno.
 */
CW_EXPORT bool collwatch_tensor_stats_load(void);

/*
 * Exported. Launches the kernel on the stream, which belongs to the current context. The tensor has
 * `elements` contiguous elements from data on. Its dtype (enum ncclDataType_t) must be floating
 * point; for others we return false. The kernel stores struct cw_sum_tensor_stats in *out, which is
 * device memory; later work on the stream can read it. False also means that we launched nothing,
 * for example because the stream is in a capture. Both addresses must be the device's: we do not
 * check them. Any thread, does not block, keeps errno.
 */
CW_EXPORT bool collwatch_tensor_stats(uint64_t data, uint64_t elements, int dtype, void *stream,
				      uint64_t out);
