/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds threads that are inside an NCCL call: threads that have entered an op and have not left it.
 *
 * A thread inside a call runs none of the program's code, and its Python frames do not change. Any
 * CPU time that the thread uses belongs to NCCL, which spins on the host while it connects to its
 * peers.
 *
 * The agent calls these functions on its own memory. The record reader calls them on a record.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_layout.h"

/*
 * Returns whether a thread may be inside a call on the communicator. The two counters may miss one
 * call if several threads use the communicator. We always return false for a communicator from
 * NCCL's profiler interface, because NCCL itself reports the end of its calls.
 */
bool cw_rec_may_be_inside(uint32_t comm_flags, uint64_t op_index, uint64_t op_returned);

/*
 * Appends to `calls` each thread whose newest op in `ops` has not returned. All ops belong to one
 * communicator. We skip an op that is queued in a group, because its thread may be anywhere before
 * the group's end. since_ns is the op's enter time on the record's clock. If the thread is already
 * in `calls`, we keep the later time, because a group may launch much later. `calls` has n entries,
 * at most max. Returns the new number of entries; we omit threads that do not fit.
 */
size_t cw_rec_inside_add(const struct cw_rec_op *ops, size_t n_ops, struct cw_rec_wait *calls,
			 size_t n, size_t max);
