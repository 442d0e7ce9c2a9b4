/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls in which NCCL gave a rank an error while other ranks wait for it there: the making of a
 * communicator, or a host call for all members (split, finalize, …).
 *
 * The error proves that the rank does not come. It does not prove that the rank is to blame: once a
 * peer's process has ended, NCCL gives the peer's neighbours ncclRemoteError or ncclSystemError
 * (analysis/culprit/death_order.h).
 *
 * Pure, O(ops of the member's window).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/waits/waitgraph.h"

struct failed_call {
	uint32_t kind;    /* enum cw_op_kind: the making of the comm, or the gate's call */
	int32_t result;   /* ncclResult_t */
	int64_t ns;       /* when it came back, or not later than that; 0 = not known */
	const char *text; /* NCCL's words, sanitised where they were read; may be empty */
};

/* What failed at this gate of the member of the gate's comm; false: nothing. */
bool failed_call_at(const struct cw_snapshot *snap, const struct gate *gate, uint32_t member,
		    struct failed_call *ret);
