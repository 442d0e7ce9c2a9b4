/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's own hash of a communicator (commHash), which its profiler interface passes. NCCL computes
 * the hash from the unique id, or from the parent's hash. We compute the same hash to find the
 * communicator that a wrapper is creating.
 */
#pragma once

#include <stdint.h>

#include "agent/base/nccl_abi.h"

struct cw_nccl_hashes {
	uint64_t now;  /* value in NCCL 2.26 and later; 0 = unknown */
	uint64_t once; /* value in NCCL 2.23 to 2.25; 0 = unknown */
};

struct cw_nccl_hashes cw_nccl_hash_of(const ncclUniqueId *id);

/*
 * Returns the hash of a split's child in NCCL 2.26 and later. count: number of the child among the
 * parent's children, from 1.
 */
uint64_t cw_nccl_hash_of_child(uint64_t parent, int count, int color);
