/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in which NCCL returned an error to a rank while other ranks wait for that rank. Such a call
 * makes a communicator, or is a host call of all members (split, finalize and similar).
 *
 * The error proves that the rank will not come. It does not prove that the rank is to blame. After
 * a peer's process has ended, NCCL returns ncclRemoteError or ncclSystemError to the peer's
 * neighbours (analysis/culprit/death_order.h).
 *
 * Pure, O(ops of the member's window).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/waits/waitgraph.h"

struct failed_call {
	uint32_t kind;    /* enum cw_op_kind: the call that makes the comm, or the gate's call */
	int32_t result;   /* ncclResult_t */
	int64_t ns;       /* the call returned at this time or before; 0 = not known */
	const char *text; /* NCCL's error text, which its reader has sanitised; may be empty */
};

/*
 * Finds the call of this member of the gate's comm that failed at the gate. Returns false if no
 * call failed; *ret is then undefined.
 */
bool failed_call_at(const struct cw_snapshot *snap, const struct gate *gate, uint32_t member,
		    struct failed_call *ret);
