/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between two members of a communicator: the n-th send of one meets the n-th receive
 * that the other posts for it. What does not fit need not hold up anybody: NCCL's buffers take a
 * small message that nobody receives, and the next receive takes it for its own.
 *
 * Two things are proven by what was recorded, whoever waits or goes on: a message that was sent
 * with one size and received with another, and a message whose other half was never posted and
 * never will be, as both sides are done with the communicator. That the numbers of sends and
 * receives differ says nothing while they go on: it is so at any moment of a pipeline.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

struct message_fault {
	enum cw_detail detail;     /* CW_DETAIL_SIZE or _NOT_POSTED; CW_DETAIL_NONE = no fault */
	uint32_t sender, receiver; /* members; of several pairs the first */
	uint64_t sends, recvs;     /* of that pair, so far */
	/* The message whose halves differ in size; NULL = one of the `sends` that went. */
	const struct cw_op *send, *recv;
	uint32_t n_pairs;   /* that have this fault */
	uint32_t *culprits; /* ranks: who did not post, or whose sizes differ */
	uint32_t n_culprits;
};

/* What the member has exchanged with that one; NULL = nothing. */
const struct cw_p2p_peer *messages_with(const struct cw_snap_member *m, uint32_t peer);

/*
 * The fault of the communicator's messages; sizes before halves that were not posted. Culprits are
 * allocated in `a`. O(pairs), and the windows at hand of pairs that may differ. 0 or -ENOMEM.
 */
int messages_compare(const struct cw_snapshot *snap, uint32_t comm, struct cw_arena *a,
		     struct message_fault *ret);

/* Both sides of some pair go on, and one has posted more than the other: windows may tell why. */
bool messages_are_uneven(const struct cw_snapshot *snap, uint32_t comm);
