/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as bytes of NCCL's data types, rounded to nearest, ties to even. Pure. */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

struct element_type {
	const char *name;
	ncclDataType_t dtype;
	size_t size;
	bool is_float;
	bool has_sign;
};

#define ELEMENT_TYPES 12

extern const struct element_type element_types[ELEMENT_TYPES];

/*
 * Writes element @i. @v must be in the type's normal range, or 0; for integer types, a
 * whole number.
 */
void element_put(void *data, size_t i, const struct element_type *t, double v);
