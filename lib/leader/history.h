/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a leader remembers of a job's rolling hashes. Nodes report at different moments, so two
 * ranks may show checkpoints that the other one has passed long ago: the leader keeps those of each
 * communicator for a while, whoever showed them, compares new ones with them, and notes for ever
 * between which two the histories parted.
 *
 * One per job; loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"

struct cw_history_comm;

struct cw_history {
	struct cw_history_comm *comms;
};

/* Calls among which the one that differs may be. */
struct cw_history_range {
	uint64_t comm_id;
	uint64_t from_seq, to_seq;
};

/* All parts of the range are asked for this often, … */
#define CW_HISTORY_TRIES 3u
/* … one after the other, and anew after this time. */
#define CW_HISTORY_RETRY_NS (INT64_C(5) * 1000000000)

/*
 * Compares the checkpoints in snap with those known, and sets agreed_seq and differ_seq of its
 * communicators. What is no longer in the snapshot is forgotten. 0 or -ENOMEM.
 */
int cw_history_update(struct cw_history *h, struct cw_snapshot *snap);

/*
 * True when the communicator's histories have parted and it is time to ask for the calls: for the
 * next at most max_calls of them.
 */
bool cw_history_should_ask(struct cw_history *h, const struct cw_snap_comm *comm,
			   uint32_t max_calls, int64_t now_ns, struct cw_history_range *ret);

void cw_history_fini(struct cw_history *h);
