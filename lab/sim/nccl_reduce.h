/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of the simulated NCCL on data types. Pure; any thread. */
#pragma once

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t sim_dtype_size(ncclDataType_t dtype);
bool sim_dtype_can_reduce(ncclDataType_t dtype);

/* One element during a reduction. */
union sim_value {
	double f;
	int64_t i;
	uint64_t u;
};

/* Combine a contribution: acc = data for the first one, then acc = acc op data. */
void sim_reduce_first(union sim_value *acc, const void *data, size_t count, ncclDataType_t dtype);
void sim_reduce_next(union sim_value *acc, const void *data, size_t count, ncclDataType_t dtype,
		     ncclRedOp_t op);
void sim_reduce_store(void *dst, const union sim_value *acc, size_t count, ncclDataType_t dtype,
		      ncclRedOp_t op, int nranks);
/* Multiplies data by scalar, in the data type. */
void sim_reduce_scale(void *data, size_t count, ncclDataType_t dtype, double scalar);
/* Returns one element as a number. */
double sim_value_to_double(const void *data, ncclDataType_t dtype);
