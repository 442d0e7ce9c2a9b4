/* SPDX-License-Identifier: Apache-2.0 */
/* Which memory an op reads on this rank, and which it has written. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/op_call.h"

struct cw_tensor {
	const void *data;
	uint64_t elements;
	unsigned element_bytes;
};

/* False: this rank feeds nothing in, or it is not known what. */
bool cw_tensor_input(const struct cw_op_desc *desc, uint32_t nranks, int32_t rank,
		     struct cw_tensor *ret);
/* False: this rank gets nothing out. */
bool cw_tensor_output(const struct cw_op_desc *desc, uint32_t nranks, int32_t rank,
		      struct cw_tensor *ret);
