/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records one NCCL call: cw_op_enter() before the real function, cw_op_leave() after it. Between
 * the two the thread counts as inside a wrapper, so we ignore NCCL's calls of its own public
 * functions.
 *
 *	if (!cw_op_enter(&call, real, caller, &desc))
 *		return real->ncclAllReduce(...);
 *	r = real->ncclAllReduce(...);
 *	cw_op_leave(&call, r);
 *
 * At entry an op gets the coll_seq or p2p_seq that it will have if it succeeds. The communicator's
 * own counters and hash advance only when the call, or the outermost group end, has succeeded.
 * One-sided ops have only an op_index, because no call of another rank matches them.
 *
 * All functions may run in any thread, are lock-free, do not allocate, and keep errno. The only
 * system calls are gettid, once per thread, and the vDSO's clock if agent/record/clock.h has no
 * faster one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_set.h"
#include "agent/record/op_call.h"

/*
 * cw_op_enter() returns false if we do not count this call: it is nested, NCCL itself makes it, or
 * the agent is disarmed. The caller must then not call cw_op_leave().
 */
bool cw_op_enter(struct cw_op_call *call, const struct cw_real *real, const void *caller,
		 const struct cw_op_desc *desc);
void cw_op_leave(struct cw_op_call *call, ncclResult_t result);

/*
 * cw_enter() returns true if we count this call. The thread is then inside a wrapper until
 * cw_leave().
 */
bool cw_enter(const struct cw_real *real, const void *caller);
void cw_leave(void);

/*
 * Record a call that can block the host until other ranks arrive. c is the entry of its
 * communicator, -1 = none. Call these functions between cw_enter() and cw_leave(). new_comm_id: the
 * id of the communicator that the call creates; 0 = the communicator exists already.
 */
void cw_hostop_enter(struct cw_op_call *call, int c, unsigned kind, uint64_t new_comm_id,
		     const void *caller);
void cw_hostop_leave(struct cw_op_call *call, ncclResult_t result);

/*
 * Returns the operator as we record it. Ranks have different handles for the same user-made
 * operator, so we record one value for all user-made operators.
 */
static inline uint8_t cw_op_redop(int redop)
{
	if (redop == CW_REDOP_NONE)
		return CW_REDOP_NONE;
	return redop >= 0 && redop < NCCL_BUILTIN_REDOPS ? (uint8_t)redop : CW_REDOP_PREMULSUM;
}

/* Advances a communicator's history by colls collectives with this sum of signatures. */
void cw_ops_commit(int c, uint64_t colls, uint64_t signature_sum);

/* Completes an op in its communicator's ring and in the bulk ring. */
void cw_ops_finish(int c, uint64_t ring_ticket, uint64_t comm_ticket, uint64_t return_ns,
		   int result, unsigned flags_set, unsigned flags_clear);
