/* SPDX-License-Identifier: Apache-2.0 */
/* Names of things in sentences. Each function fills a fixed struct and returns its text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

struct phrase {
	char text[384];
};

/* True if the rank is known from a recording without calls, that is a dump without entries. */
bool phrase_is_empty_recording(const struct cw_snap_rank *rank);
/*
 * "rank 3 (node-a, pid 812)". A rank in a pod: "rank 3 (pod ml/train-3, pid 17 there; node-a,
 * pid 812)".
 */
const char *phrase_rank(const struct cw_snapshot *snap, uint32_t rank, struct phrase *p);

/* "rank 3" or "ranks 0-2,4-7"; "no rank" if n is 0 */
const char *phrase_ranks(const struct cw_snapshot *snap, const uint32_t *ranks, uint32_t n,
			 struct phrase *p);

/* Like phrase_ranks(), but takes n labels, n > 0. */
const char *phrase_labels(const int32_t *labels, uint32_t n, struct phrase *p);

/* "tp_group"; "comm 4" if the name is a number; "comm 0x1f2e…" without a name */
const char *phrase_comm(const struct cw_snapshot *snap, uint32_t comm, struct phrase *p);

/*
 * "all_reduce". For calls that make communicators, NCCL's function: "ncclCommSplit". The text
 * is static.
 */
const char *phrase_kind(unsigned kind);

/*
 * "all_reduce #42", "send #31 to rank 3" or, for a call without a number, "ncclCommSplit". The peer
 * is named by its rank in the job, like all other ranks of a sentence. If the member is not
 * visible, or the comm is CW_SNAP_NONE, it is "comm rank 1".
 */
const char *phrase_call(const struct cw_snapshot *snap, uint32_t comm, const struct cw_op *op,
			struct phrase *p);

/*
 * "ncclSystemError (\"no socket interface found\")": a result of NCCL with NCCL's message. The
 * message is put on one line and cut to the length that a record holds. Without a message, the
 * result alone.
 */
const char *phrase_error(int32_t result, const char *text, struct phrase *p);

/* "350 ms", "12 s", "7 min", "3 h" */
const char *phrase_time(int64_t ns, struct phrase *p);

/* Time since `then_ns`: "12 s", or "an unknown time" for 0. */
const char *phrase_since(const struct cw_snapshot *snap, int64_t then_ns, struct phrase *p);

/*
 * Appends the property of a rank that differs from the other members: "loaded NCCL 2.21.5",
 * "made it with 7 ranks", "started with other NCCL_* variables than the rest", "made the calls
 * of this group in another order than the rest" (detail: CW_DETAIL_VERSION, _MEMBERSHIP,
 * _ENVIRONMENT, _ORDER).
 */
void phrase_trait(const struct cw_snapshot *snap, uint32_t comm, uint32_t rank,
		  enum cw_detail detail, char *text, size_t len);
