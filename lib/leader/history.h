/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader's memory of a job's rolling hashes. Nodes report at different times, so a rank may send
 * checkpoints that another rank passed long ago. The leader stores the checkpoints of each
 * communicator for a while, no matter which rank sent them. It compares new checkpoints with stored
 * ones. It remembers permanently between which two checkpoints the histories diverged.
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

/* A range of calls that contains the first call at which the histories differ. */
struct cw_history_range {
	uint64_t comm_id;
	uint64_t from_seq, to_seq;
};

/*
 * How often we request the whole range. In each try we request all its parts one after the other.
 */
#define CW_HISTORY_TRIES 3u
/* The time after which we request a range of calls again. */
#define CW_HISTORY_RETRY_NS (INT64_C(5) * 1000000000)

/*
 * Compares the checkpoints in snap with the stored ones. Sets agreed_seq and differ_seq of the
 * communicators in snap. Forgets communicators that are no longer in snap. Returns 0 or -ENOMEM.
 */
int cw_history_update(struct cw_history *h, struct cw_snapshot *snap);

/*
 * True if the communicator's histories have diverged and it is time to request the calls. *ret is
 * then the next part of the range, at most max_calls long.
 */
bool cw_history_should_ask(struct cw_history *h, const struct cw_snap_comm *comm,
			   uint32_t max_calls, int64_t now_ns, struct cw_history_range *ret);

void cw_history_fini(struct cw_history *h);
