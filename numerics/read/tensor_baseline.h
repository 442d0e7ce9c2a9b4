/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts collwatch.torch's file about the operator calls of one rank into a baseline of that
 * rank. The file contains statistics of inputs and outputs (docs/schemas.md: collwatch.tensors/1).
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
 * Makes DIR/rank-N.operators.baseline from the lines in path. Returns 0, or -errno with an
 * explanation in err. -ENODATA: the file has no operator calls, or its rank is unknown. -EEXIST:
 * the baseline exists. Other errors are those of cw_tensor_file_each() and
 * cw_baseline_writer_new().
 */
int cw_tensor_baseline_make(const char *path, const char *dir, struct cw_tensor_baseline_said *ret,
			    struct cw_err *err);
