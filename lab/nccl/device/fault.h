/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of this process's GPU (lab/nccl/faults.h). Any thread. */
#pragma once

#include "lab/nccl/device/block.h"

namespace lab
{

/* Waits while the GPU starts no kernel, or until the communicator is aborted. */
void fault_before_kernel(Block &b);
/* Call it before each slice. Waits while the GPU stands, or until the communicator is aborted. */
void fault_before_slice(Block &b);

} // namespace lab
