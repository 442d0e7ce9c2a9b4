/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One digest: everything a node knows about the ranks of one job, at one instant. All its parts
 * live in one arena and are borrowed by the message.
 *
 * Ages are relative to the moment of making, which is right after sampling; a rank whose last
 * sample is older says so in sampled_age_ns. A dead rank's record cannot change any more, so its
 * facts are as fresh as the look that finds it dead: its sampled age is 0.
 *
 * A digest that is sent must fit one frame. When it would not, the ranks' quiet communicators are
 * left out first (those with something pending matter), then per-peer counters; what is left out is
 * counted in the rank's `dropped`, which lowers confidence.
 *
 * Pure: what comes out depends on records, on what is known of their processes, and on nothing
 * else. So a daemon, `collwatch analyze RECORD...` and the suite make the same of the same.
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

/* All borrowed by the digest, too. */
struct cw_digest_source {
	const char *node;
	uint64_t epoch, number;
	const struct cw_job_id *job;
	const struct cw_digest_rank *ranks; /* all of the job with a record */
	uint32_t n_ranks;
	const struct cw_msg_rank *absent; /* those without one, as they are told of */
	uint32_t n_absent;
	uint32_t untracked; /* rank processes of the job that have no place */
	bool is_sent;       /* it must fit a frame */
};

/* 0 or -ENOMEM (then nothing is to be released). */
int cw_digest_make(const struct cw_digest_source *source, struct cw_digest *ret);
void cw_digest_fini(struct cw_digest *digest);
