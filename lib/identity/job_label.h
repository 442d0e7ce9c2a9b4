/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The label that all ranks of a job share, and two hashes of it and of the uid: the key by which
 * nodes find the job, and the older route (docs/design/leader.md#what-a-job-is).
 *
 * Within one user's processes a label names, it does not decide: jobs are connected components of
 * communicators, joined by the leader. What matters here is that ranks that talk to each other get
 * the same label, and that users are kept apart: uid and label are compared wherever a hash of them
 * was found (identity/job_id.h).
 *
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/job_key.h"
#include "record/record_layout.h"
#include "record/record_reader.h"

#define CW_JOB_LABEL_BYTES 160

/*
 * Writes the label of a process into buf[CW_JOB_LABEL_BYTES]: the job label of its environment,
 * else "master:HOST:PORT", else "comm:0x…" of its first root communicator (or of the one it is
 * just initialising), in a pod "comm:NAMESPACE/0x…". False: nothing names it yet; ask again at the
 * next sample.
 */
bool cw_job_label(const struct cw_rec_header *header, const struct cw_record_comm *comms, size_t n,
		  char *buf);

/*
 * The first 128 bits of SHA-256 over a fixed word, the uid and the label, each behind its length.
 * No secret goes in: while nodes change to another key, one job would have two. label: at most
 * CW_JOB_LABEL_BYTES - 1. 0, -EINVAL, or -ENOMEM.
 */
int cw_job_key_make(uint32_t uid, const char *label, struct cw_job_key *ret);

/*
 * 64 bits that anybody can hit with a label of his own: no name of a job. It is the weight by which
 * leaders are elected (two jobs of one route have the same leader, no more), and the only name that
 * peers of the version before know. Never 0.
 */
uint64_t cw_job_route(const char *label, uid_t uid);
