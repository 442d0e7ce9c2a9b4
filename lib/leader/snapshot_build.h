/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From digests to the engine's input: ages become instants on this daemon's timeline, members are
 * joined by comm id and comm rank, windows are attached where they were fetched. Everything in a
 * digest is untrusted: places beyond the limits are left out and said in the snapshot's notes.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "leader/job.h"
#include "leader/route.h"
#include "model/snapshot.h"

/* Members of one communicator, and places of all communicators of a job: 300 bytes each. */
#define CW_BUILD_MAX_NRANKS 65536u
#define CW_BUILD_MAX_PLACES (1u << 19)

struct cw_build {
	const struct cw_route *route;
	const struct cw_rank_ref *refs; /* of this job */
	unsigned n_refs;
	struct cw_job *job; /* its windows; NULL = none are attached */
	struct cw_thresholds thresholds;
	int64_t now_ns, wall_ns, held_ns;
	/* Memory of an earlier one, taken if there is one; NULL = none to be taken. */
	struct cw_snapshot **spare;
	uint64_t places_free;  /* that nobody needs to have reported for */
	uint64_t *left_out;    /* counts communicators beyond a limit; NULL = nobody does */
	bool sees_only_itself; /* there are no peers … */
	bool finds_peers;      /* … yet: they come and go */
	/* Of those that never reported: where ranks are missing, they may be there. */
	const struct cw_peer *peers;
	unsigned n_peers;
	int64_t awake_ns;
};

/* 0, -ENOMEM or -E2BIG. */
int cw_snapshot_build(const struct cw_build *in, struct cw_snapshot **ret);
