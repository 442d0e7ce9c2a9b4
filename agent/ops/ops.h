/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording one NCCL call: enter before the real function, leave after it. Between the two the
 * thread is inside a wrapper, so that NCCL's calls of its own public functions do not count.
 *
 *	if (!cw_op_enter(&call, real, caller, &desc))
 *		return real->ncclAllReduce(...);
 *	r = real->ncclAllReduce(...);
 *	cw_op_leave(&call, r);
 *
 * Numbers: an op gets its coll_seq or p2p_seq when it is entered, as the one it will have if it
 * succeeds; the communicator's own counters and hash move when the call, or the outermost group
 * end, succeeded. One-sided ops have an op_index only: no call of another rank matches them.
 *
 * All functions: any thread, lock-free, no allocation, no system call but the vDSO's clock where
 * agent/record/clock.h has no other (and gettid once per thread); errno is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_set.h"
#include "agent/record/op_call.h"

/* False: not ours to count (nested, disarmed, from inside NCCL); leave must not be called. */
bool cw_op_enter(struct cw_op_call *call, const struct cw_real *real, const void *caller,
		 const struct cw_op_desc *desc);
void cw_op_leave(struct cw_op_call *call, ncclResult_t result);

/* True, and the thread is inside from here on, when this call counts. */
bool cw_enter(const struct cw_real *real, const void *caller);
void cw_leave(void);

/*
 * A call that can block the host until other ranks arrive, on an entry (-1 = none). Between
 * cw_enter() and cw_leave(). new_comm_id: of the communicator being made, 0 when it exists.
 */
void cw_hostop_enter(struct cw_op_call *call, int c, unsigned kind, uint64_t new_comm_id,
		     const void *caller);
void cw_hostop_leave(struct cw_op_call *call, ncclResult_t result);

/* As recorded: a user-made operator's handle differs per rank for the same operator. */
static inline uint8_t cw_op_redop(int redop)
{
	if (redop == CW_REDOP_NONE)
		return CW_REDOP_NONE;
	return redop >= 0 && redop < NCCL_BUILTIN_REDOPS ? (uint8_t)redop : CW_REDOP_PREMULSUM;
}

/* Moves a communicator's history forward by colls collectives with this sum of signatures. */
void cw_ops_commit(int c, uint64_t colls, uint64_t signature_sum);

/* Completes an op in both rings. */
void cw_ops_finish(int c, uint64_t ring_ticket, uint64_t comm_ticket, uint64_t return_ns,
		   int result, unsigned flags_set, unsigned flags_clear);
