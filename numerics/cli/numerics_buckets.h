/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows whose gradients a call carried. We combine two sources: the statistics in flight records,
 * and the description of a step's collectives by collwatch.torch.
 */
#pragma once

#include "numerics/read/numerics_files.h"
#include "numerics/read/tensor_lines.h"

/*
 * Sets `carried` of the calls of a judged job. For each rank it uses the collwatch.torch file of
 * the same rank. Returns 0 or -ENOMEM.
 */
int numerics_buckets_fill(struct cw_numerics_input *in, const struct cw_numerics_report *said,
			  const struct cw_tensor_lines *lines);
