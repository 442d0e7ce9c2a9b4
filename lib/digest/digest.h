/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A digest: everything a node knows about the ranks of one job, at one instant. All parts of a
 * digest live in one arena, from which the message borrows them.
 *
 * Ages count back from the moment when we make the digest, right after sampling. If a rank's last
 * sample is older, sampled_age_ns shows its age. The record of a dead rank cannot change any more.
 * The facts of such a rank are therefore as fresh as the check that found it dead, and
 * sampled_age_ns is 0.
 *
 * A digest for another node must fit one frame. If it does not, we first omit quiet communicators
 * of ranks, because communicators with pending ops matter more. Next we omit per-peer counters. The
 * rank's `dropped` counts the omitted communicators, and lowers confidence.
 *
 * Pure: the digest depends only on records and on facts about their processes. A daemon, `collwatch
 * analyze RECORD...` and the suite therefore make the same digest from the same input.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digest/rank.h"
#include "identity/job_id.h"
#include "model/arena.h"
#include "proto/messages.h"

struct cw_digest {
	struct cw_msg_digest msg;
	struct cw_arena arena;
};

/* The input for a digest, which borrows all parts of it. */
struct cw_digest_source {
	const char *node;
	uint64_t epoch, number;
	const struct cw_job_id *job;
	const struct cw_digest_rank *ranks; /* all ranks of the job with a record */
	uint32_t n_ranks;
	/* Ranks without a record, in the form of the message. */
	const struct cw_msg_rank *unregistered;
	uint32_t n_unregistered;
	uint32_t untracked; /* rank processes of the job that exceed the daemon's limit */
	bool is_sent;       /* true: the digest goes to another node and must fit one frame */
};

/* Makes a digest. Returns 0 or -ENOMEM. After -ENOMEM there is nothing to release. */
int cw_digest_make(const struct cw_digest_source *source, struct cw_digest *ret);
void cw_digest_fini(struct cw_digest *digest);
