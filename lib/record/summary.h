/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of one tensor (docs/design/summaries.md), computed by the CPU. The result is the
 * reference for the kernel. The simulated device runs this code in the kernel's place.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"
#include "record/summary_math.h"

/*
 * Does the work of the kernel on the CPU: reads args->data and writes args->out. Also writes
 * args->first_out if this tensor has NaN or infinity and no earlier one is stored there. Addresses
 * are those of this process. device_ns comes from the monotonic clock.
 */
void cw_summary_run(const struct cw_summary_args *args);

/* Computes only the statistics and stores them in their fields of ret. */
void cw_summary_compute(const struct cw_summary_args *args, struct cw_rec_summary *ret);
