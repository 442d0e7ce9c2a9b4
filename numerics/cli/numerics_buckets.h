/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combines collwatch.torch's description of a step's collectives with the numbers in flight
 * records: it shows whose gradients a call carried.
 */
#pragma once

#include "numerics/read/numerics_files.h"
#include "numerics/read/tensor_lines.h"

/*
 * Fills in the cargo of a judged job's calls: for each rank, from the file of the same
 * rank. -ENOMEM.
 */
int numerics_buckets_fill(struct cw_numerics_input *in, const struct cw_numerics_report *said,
			  const struct cw_tensor_lines *lines);
