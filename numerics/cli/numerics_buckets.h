/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What collwatch.torch says of a step's collectives, told with what flight records say of their
 * numbers: whose gradients a call carried.
 */
#pragma once

#include "numerics/read/numerics_files.h"
#include "numerics/read/tensor_lines.h"

/*
 * Fills in what the looks of a judged job carried: of a rank, what the file says that is of the
 * same one. -ENOMEM.
 */
int numerics_buckets_tell(struct cw_numerics_input *in, const struct cw_numerics_report *said,
			  const struct cw_tensor_lines *lines);
