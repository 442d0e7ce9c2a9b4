/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds threads that are inside an NCCL call, from the ops that they have entered and not left.
 * Such a thread runs none of the program's code. Its Python frames hold still, and any CPU time it
 * uses is NCCL's, which spins on the host while it connects to its peers.
 *
 * The agent calls this on its own memory, and the record reader on a record.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_layout.h"

/*
 * Returns whether a thread may be inside a call on the communicator. The counters may miss one call
 * if several threads use the communicator. Always false for calls from NCCL's profiler interface,
 * where NCCL itself reports the end of a call.
 */
bool cw_rec_may_be_inside(uint32_t comm_flags, uint64_t op_index, uint64_t op_returned);

/*
 * Adds each thread whose newest op among these, all of one communicator, has not returned. An op
 * that is queued in a group does not count: its thread may be anywhere before the group's end.
 * since_ns is the op's enter time on the record's clock. For a thread on several communicators we
 * take the latest, because a group may launch much later. calls: n of max so far. Returns how many
 * there are now, and omits threads past max.
 */
size_t cw_rec_inside_add(const struct cw_rec_op *ops, size_t n_ops, struct cw_rec_wait *calls,
			 size_t n, size_t max);
