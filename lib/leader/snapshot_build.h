/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the engine's input from digests. It converts ages to instants on this daemon's timeline,
 * joins members by comm id and comm rank, and attaches fetched windows. All data of a digest is
 * untrusted. We omit members over the limits, and the snapshot's notes say so.
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "leader/job.h"
#include "leader/job_digests.h"
#include "model/snapshot.h"

/*
 * The maximum number of members of one communicator, and of all communicators of a job. A member
 * takes 300 bytes.
 */
#define CW_BUILD_MAX_NRANKS 65536u
#define CW_BUILD_MAX_PLACES (1u << 19)
/* Connections per job. They take 24 MB. */
#define CW_BUILD_MAX_CONNECTIONS (1u << 18)

struct cw_build {
	const struct cw_job_digests *digests;
	const struct cw_rank_ref *refs; /* the ranks of this job */
	unsigned n_refs;
	struct cw_job *job; /* the job whose windows we attach; NULL = attach none */
	struct cw_thresholds thresholds;
	int64_t now_ns, wall_ns, held_ns;
	/*
	 * The memory of an earlier snapshot, which we reuse; *spare may be NULL. NULL = always
	 * allocate.
	 */
	struct cw_snapshot **spare;
	uint64_t places_free;  /* number of members that may be in the snapshot although no rank has
				  reported them */
	uint64_t *over_limit;  /* counter of communicators over a limit; NULL = no counter */
	bool sees_only_itself; /* this node has no peers */
	/* Peers come and go, so zero peers may mean that we have not found one yet. */
	bool finds_peers;
	/* The peers. A peer that never reported may have the missing ranks. */
	const struct cw_peer *peers;
	unsigned n_peers;
	int64_t awake_ns;
};

/* Builds the snapshot. Returns 0, -ENOMEM or -E2BIG. */
int cw_snapshot_build(const struct cw_build *in, struct cw_snapshot **ret);
