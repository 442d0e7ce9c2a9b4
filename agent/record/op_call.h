/* SPDX-License-Identifier: Apache-2.0 */
/* One call into NCCL while we record it: its parameters and its place in the record. */
#pragma once

#include <stdint.h>

#include "agent/base/nccl_abi.h"
#include "model/op.h"

struct cw_op_desc {
	uint8_t kind; /* enum cw_op_kind */
	int dtype;    /* CW_DTYPE_NONE if the kind has none */
	int redop;    /* NCCL's value, CW_REDOP_NONE if the kind has none */
	int32_t root_or_peer;
	uint64_t count;
	const void *send;
	const void *recv;
	ncclComm_t comm;
	cudaStream_t stream;
};

struct cw_op_call {
	int comm; /* the communicator's entry, -1 = we did not record the call */
	uint8_t kind;
	uint16_t slot;
	uint16_t flags;
	/* index + 1 of the CUDA graph's part that captured the call, 0 = none */
	uint16_t part_plus_1;
	uint32_t summary_id; /* entry + 1 of the input's summary, 0 = none */
	/* p2p: index of the peer in the block, UINT32_MAX = the block is full. */
	uint32_t peer_index;
	uint64_t ring_ticket, comm_ticket;
	uint64_t enter_ns;
	uint64_t op_index;
	uint64_t seq;
	uint64_t signature; /* only for collectives */
	uint64_t bytes;
	cudaStream_t stream;
	uint32_t time_entry;           /* entry of agent/cuda/device_times.h; 0 = not timed */
	const struct cw_op_desc *desc; /* the caller owns it; NULL for calls that block the host */
};
