/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One digest: everything this node knows about the ranks of one job, at one instant. All its
 * parts live in one arena and are borrowed by the message.
 *
 * Ages are relative to the moment of making, which is right after sampling; a rank whose last
 * sample is older says so in sampled_age_ns. A dead rank's record cannot change any more, so its
 * facts are as fresh as the look that finds it dead: its sampled age is 0.
 *
 * A digest must fit one frame. When it would not, the ranks' quiet communicators are left out first
 * (those with something pending matter), then per-peer counters; what is left out is counted in the
 * rank's `dropped`, which lowers confidence.
 *
 * Pure but for reading records; loop thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/process/process.h"
#include "model/arena.h"
#include "proto/messages.h"

struct cw_absent;

struct cw_digest {
	struct cw_msg_digest msg;
	struct cw_arena arena;
};

struct cw_digest_source {
	const char *node;
	uint64_t epoch, number;
	const struct cw_job_id *job;
	struct cw_process **processes; /* all of the job */
	uint32_t n_processes;
	const struct cw_absent *absent; /* ranks without a record; NULL = none */
	uint32_t untracked;             /* rank processes of the job that have no place */
	int64_t now_ns;
	int64_t held_ns; /* how long this daemon was held up so far: now_ns less its awake clock */
};

/* 0 or -ENOMEM (then nothing is to be released). */
int cw_digest_make(const struct cw_digest_source *source, struct cw_digest *ret);
void cw_digest_fini(struct cw_digest *digest);
