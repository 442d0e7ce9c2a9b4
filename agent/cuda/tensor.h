/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that an op reads or writes on this rank. The functions are pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/op_call.h"

struct cw_tensor {
	const void *data;
	uint64_t elements;
	unsigned element_bytes;
};

/* Finds the input. Returns false if this rank has no input, or if we do not know the input. */
bool cw_tensor_input(const struct cw_op_desc *desc, uint32_t nranks, int32_t rank,
		     struct cw_tensor *ret);
/* Finds the output. Returns false if this rank has no output. */
bool cw_tensor_output(const struct cw_op_desc *desc, uint32_t nranks, int32_t rank,
		      struct cw_tensor *ret);
