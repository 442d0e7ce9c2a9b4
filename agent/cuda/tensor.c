/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills in a tensor. NCCL's count is the size of one rank's part (nccl.h). In all_gather and gather
 * a rank sends one part. In reduce_scatter and scatter it receives one part. In all-to-all a rank
 * exchanges one part with each rank. If only the root uses a buffer, the pointer may be anything on
 * other ranks, and we do not touch it.
 */
#include "agent/cuda/tensor.h"

#include "model/op.h"
#include "record/summary_math.h"

static bool tensor(const void *data, uint64_t count, uint64_t parts, int dtype,
		   struct cw_tensor *ret)
{
	unsigned size;

	if (!data || !count || (unsigned)dtype >= CW_DTYPE__MAX)
		return false;
	size = cw_sum_bytes((unsigned)dtype);
	if (parts == 0 || count > (UINT64_MAX >> 1) / size / parts)
		return false;
	*ret = (struct cw_tensor){ .data = data, .elements = count * parts, .element_bytes = size };
	return true;
}

bool cw_tensor_input(const struct cw_op_desc *desc, uint32_t nranks, int32_t rank,
		     struct cw_tensor *ret)
{
	uint64_t parts = 1;

	switch (desc->kind) {
	case CW_OP_ALL_REDUCE:
	case CW_OP_REDUCE:
	case CW_OP_ALL_GATHER:
	case CW_OP_GATHER:
	case CW_OP_SEND:
	case CW_OP_PUT_SIGNAL:
		break;
	case CW_OP_REDUCE_SCATTER:
	case CW_OP_ALL_TO_ALL:
		parts = nranks;
		break;
	case CW_OP_SCATTER:
		parts = nranks;
		__attribute__((fallthrough));
	case CW_OP_BROADCAST:
		if (rank < 0 || rank != desc->root_or_peer)
			return false;
		break;
	default:
		return false;
	}
	return tensor(desc->send, desc->count, parts, desc->dtype, ret);
}

bool cw_tensor_output(const struct cw_op_desc *desc, uint32_t nranks, int32_t rank,
		      struct cw_tensor *ret)
{
	uint64_t parts = 1;

	switch (desc->kind) {
	case CW_OP_ALL_REDUCE:
	case CW_OP_BROADCAST:
	case CW_OP_REDUCE_SCATTER:
	case CW_OP_SCATTER:
	case CW_OP_RECV:
		break;
	case CW_OP_ALL_GATHER:
	case CW_OP_ALL_TO_ALL:
		parts = nranks;
		break;
	case CW_OP_GATHER:
		parts = nranks;
		__attribute__((fallthrough));
	case CW_OP_REDUCE:
		if (rank < 0 || rank != desc->root_or_peer)
			return false;
		break;
	default:
		return false;
	}
	return tensor(desc->recv, desc->count, parts, desc->dtype, ret);
}
