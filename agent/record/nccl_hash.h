/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's own hash of a communicator (commHash), which its profiler interface passes. NCCL computes
 * it from the unique id, or from the parent's hash. We compute it too, to find the communicator
 * that a wrapper is creating.
 */
#pragma once

#include <stdint.h>

#include "agent/base/nccl_abi.h"

struct cw_nccl_hashes {
	uint64_t now;  /* from NCCL 2.26 on; 0 = unknown */
	uint64_t once; /* NCCL 2.23 to 2.25; 0 = unknown */
};

struct cw_nccl_hashes cw_nccl_hash_of(const ncclUniqueId *id);

/* The hash of a split's child, from NCCL 2.26 on. count: the parent's children so far, from 1. */
uint64_t cw_nccl_hash_of_child(uint64_t parent, int count, int color);
