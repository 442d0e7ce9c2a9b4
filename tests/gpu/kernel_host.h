/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel itself (agent/cuda/summary_kernel.cu), compiled for the host: its blocks run one after
 * the other, the threads of a block in turns from barrier to barrier. Loads that a device would
 * refuse, and a barrier that only some threads come to, end the program. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/summary_math.h"

/*
 * As a launch of so many blocks. A device promises no order: is_backwards is another one, of the
 * blocks and of the threads between two barriers.
 */
void kernel_host_run(const struct cw_summary_args *args, uint32_t blocks, bool is_backwards);

/* Forgets that a first tensor with NaN or infinity was seen, as a module loaded anew. */
void kernel_host_reset(void);
