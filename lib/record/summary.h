/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of one tensor (docs/design/summaries.md), computed by the CPU: the reference for the
 * kernel, and what the simulated device runs in its place.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"
#include "record/summary_math.h"

/*
 * What the kernel does: reads args->data and writes args->out, and args->first_out when the tensor
 * is the first with NaN or infinity there. Addresses are those of this process. device_ns is taken
 * from the monotonic clock.
 */
void cw_summary_run(const struct cw_summary_args *args);

/* The numbers alone, into those fields of ret. */
void cw_summary_compute(const struct cw_summary_args *args, struct cw_rec_summary *ret);
