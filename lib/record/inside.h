/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are inside an NCCL call, by the ops they have entered and not left. Such a thread
 * runs none of the program's code: its Python frames hold still, and CPU that it uses is NCCL's,
 * which spins on the host while it connects to its peers.
 *
 * For both who ask: the agent, of its own memory, and the reader of a record.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_layout.h"

/*
 * Whether some call on the communicator may not have returned; the counters may miss one where
 * several threads use it. Not through NCCL's profiler interface, where NCCL tells what has ended.
 */
bool cw_rec_may_be_inside(uint32_t comm_flags, uint64_t op_index, uint64_t op_returned);

/*
 * Adds the threads whose newest of these ops, all of one communicator, has not returned. An op that
 * is queued in a group does not count: its thread may be anywhere before the group's end. since_ns
 * is when that op was entered, on the record's clock, and of several communicators the latest: a
 * group may have been launched much later. calls: n of max so far. Returns how many there are now;
 * threads past max are left out.
 */
size_t cw_rec_inside_add(const struct cw_rec_op *ops, size_t n_ops, struct cw_rec_wait *calls,
			 size_t n, size_t max);
