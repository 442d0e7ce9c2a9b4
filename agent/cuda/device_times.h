/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_PROGRESS=timed: of an op every now and then, when it began and ended on the device. A
 * kernel of one thread before it and one behind it store the device's clock in the flight record;
 * at most one op in SAMPLE_NS of a process, so that two launches of some microseconds cost less
 * than 0.1 % of a stream's time. Ops inside groups have no launch of their own and are left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/op_call.h"

extern bool cw_times_is_on;

/* As cw_summary_comm_ready(). */
void cw_times_comm_ready(void *context, uint64_t pages);

/*
 * Right before and right after the real call, in the thread that makes it. Keep errno. The first
 * returns what the second wants; 0 = this op is not timed.
 */
uint32_t cw_times_begin(const struct cw_op_call *call, uint64_t enter_ns);
void cw_times_end(const struct cw_op_call *call, uint32_t entry, bool is_good);
