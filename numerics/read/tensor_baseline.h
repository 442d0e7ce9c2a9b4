/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of operators that collwatch.torch wrote of one rank, each with the numbers of what went
 * in and came out (docs/schemas.md: collwatch.tensors/1), as a baseline of that rank.
 *
 * Hostile input. Reads and writes block.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"

struct cw_tensor_baseline_said {
	int32_t rank;
	uint64_t n_calls, n_lost, n_unread;
};

/*
 * Makes DIR/rank-N.operators.baseline of the lines in path. 0, or err names what is wrong: -ENODATA
 * there are no calls of operators in it, or its rank is not known; -EEXIST it has been made; else
 * as cw_tensor_file_each() and cw_baseline_writer_new().
 */
int cw_tensor_baseline_make(const char *path, const char *dir, struct cw_tensor_baseline_said *ret,
			    struct cw_err *err);
