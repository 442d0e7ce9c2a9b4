/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of the kernels on NCCL's data types, rounded as the device rounds it. Pure. */
#pragma once

#include "device.h"

#include <cstddef>
#include <cstdint>

namespace lab
{

struct Reducer {
	size_t size; /* of an element */
	/* dst = a op b; dst may be a. */
	void (*reduce)(void *dst, const void *a, const void *b, size_t count, uint64_t arg);
	/* dst = the contribution of src to the sum, if it differs from src; NULL: it does not. */
	void (*before)(void *dst, const void *src, size_t count, uint64_t arg);
	/* The same for the result. */
	void (*after)(void *dst, size_t count, uint64_t arg);
	/* Loads an argument that is passed by address. */
	uint64_t (*load_arg)(const void *ptr);
};

/* For an operator of the device and a data type; NULL if there is none. */
const Reducer *reducer_of(int op, int type);
/* For bytes, which are only copied. */
const Reducer *reducer_of_bytes();

} // namespace lab
