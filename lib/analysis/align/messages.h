/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between two members of a communicator. The n-th send of one member meets the n-th
 * receive that the other posts for it. A missing half need not block any rank: NCCL's buffers
 * accept a small message that has no receive, and the next receive takes this message as its own.
 *
 * The record proves two faults, even if no rank waits. A message was sent with one size and
 * received with another. Or one half of a message was never posted and never will be, because both
 * sides are done with the communicator. While both sides go on, different numbers of sends and
 * receives are normal: every pipeline has them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

struct message_fault {
	enum cw_detail detail;     /* CW_DETAIL_SIZE or _NOT_POSTED; CW_DETAIL_NONE = no fault */
	uint32_t sender, receiver; /* members; of the first pair if there are several */
	uint64_t sends, recvs;     /* of this pair, so far */
	/*
	 * The message whose halves differ in size. NULL = one of the first `sends` messages, not
	 * known which.
	 */
	const struct cw_op *send, *recv;
	uint32_t n_pairs;   /* pairs that have this fault */
	uint32_t *culprits; /* ranks that did not post their half, or whose sizes differ */
	uint32_t n_culprits;
};

/* Returns the member's message counters with this peer; NULL = no messages. */
const struct cw_p2p_peer *messages_with(const struct cw_snap_member *m, uint32_t peer);

/*
 * Finds the fault of the communicator's messages. Different sizes come before halves that were not
 * posted. Culprits are allocated in `a`. O(pairs), plus the windows of pairs that may differ.
 * Returns 0 or -ENOMEM.
 */
int messages_compare(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
		     struct message_fault *ret);

/*
 * True if both sides of some pair go on and one has posted more than the other. Their windows may
 * show why.
 */
bool messages_are_uneven(const struct cw_snapshot *snap, uint32_t comm);
