/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between two members of a communicator. The n-th send of one member meets the n-th
 * receive that the other member posts for it. A missing half does not always block a rank. NCCL's
 * buffers accept a small message that has no receive, and the next receive takes this message as
 * its own.
 *
 * The record proves two faults, even if no rank waits:
 *
 *  - A message was sent with one size and received with another.
 *  - One half of a message was never posted and never will be, because both members are done with
 *    the communicator.
 *
 * While both members go on, different numbers of sends and receives are normal: every pipeline has
 * them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

struct message_fault {
	/* CW_DETAIL_SIZE or CW_DETAIL_NOT_POSTED; CW_DETAIL_NONE = no fault. */
	enum cw_detail detail;
	/* Members; if several pairs have the fault, those of the first pair. */
	uint32_t sender, receiver;
	uint64_t sends, recvs; /* numbers of sends and receives of this pair, so far */
	/*
	 * Both halves of the message whose sizes differ. NULL = it is one of the first `sends`
	 * messages, but we do not know which one.
	 */
	const struct cw_op *send, *recv;
	uint32_t n_pairs;   /* number of pairs that have the fault */
	uint32_t *culprits; /* ranks that did not post their half, or whose sizes differ */
	uint32_t n_culprits;
};

/* Returns the member's message counters with this peer; NULL = no messages. */
const struct cw_p2p_peer *messages_with(const struct cw_snap_member *m, uint32_t peer);

/*
 * Finds the fault of the communicator's messages. If there are both faults, different sizes win
 * over halves that were not posted. The culprits are allocated in `a`. O(pairs), plus the windows
 * of pairs that may differ. Returns 0 or -ENOMEM.
 */
int messages_compare(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
		     struct message_fault *ret);

/*
 * True if the numbers of sends and receives between two members differ while both members go on.
 * Their windows may show why.
 */
bool messages_are_uneven(const struct cw_snapshot *snap, uint32_t comm);
