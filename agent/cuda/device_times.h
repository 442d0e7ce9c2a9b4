/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_PROGRESS=timed: measures when some ops begin and end on the device. A kernel of one
 * thread before the op and another one behind it store the device's clock in the flight record. A
 * process times at most one op in SAMPLE_NS. Two launches of some microseconds then cost less than
 * 0.1 % of a stream's time. Ops inside groups have no launch of their own, so we do not time them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/record/op_call.h"

extern bool cw_times_is_on;

/* Prepares the context of a communicator. Has the same contract as cw_summary_comm_ready(). */
void cw_times_comm_ready(void *context, uint64_t pages);

/*
 * Call cw_times_begin() right before the real call and cw_times_end() right after it, in the same
 * thread. Both keep errno. cw_times_begin() returns the `entry` to pass to cw_times_end(); 0 = we
 * do not time this op.
 */
uint32_t cw_times_begin(const struct cw_op_call *call, uint64_t enter_ns);
void cw_times_end(const struct cw_op_call *call, uint32_t entry, bool is_good);
