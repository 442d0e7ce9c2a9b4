/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The label that all ranks of a job share, and two hashes of label and uid. Nodes find the job by
 * the first hash, its key. The second hash is a weight in elections
 * (docs/design/leader.md#what-a-job-is).
 *
 * Within the processes of one user a label is only a name. It does not define the job: jobs are
 * connected components of communicators, and the leader joins them. The label has two duties. Ranks
 * that communicate must get the same label, and ranks of different users must get different jobs.
 * After a hit by hash we compare uid and label (identity/job_id.h).
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
 * Writes the label of a process into buf[CW_JOB_LABEL_BYTES]. We take the first of these labels
 * that exists:
 * - the job label of its environment;
 * - "master:HOST:PORT";
 * - "comm:0x…" of its first root communicator, or of the communicator that it is initialising now;
 *   in a pod "comm:NAMESPACE/0x…".
 * Returns false if none of them exists yet. The caller tries again at the next sample.
 */
bool cw_job_label(const struct cw_rec_header *header, const struct cw_record_comm *comms, size_t n,
		  char *buf);

/*
 * Makes the key of a job. The key is the first 128 bits of SHA-256 over a fixed word, the uid and
 * the label. The length of each part precedes the part. The hash contains no secret. Otherwise one
 * job would have two keys while nodes change to another secret. label: at most CW_JOB_LABEL_BYTES -
 * 1 bytes. Returns 0, -EINVAL, or -ENOMEM.
 */
int cw_job_key_make(uint32_t uid, const char *label, struct cw_job_key *ret);

/*
 * Returns a 64-bit hash, never 0. Any user can choose a label whose hash collides with another
 * job's, so the hash does not identify a job. It is the weight in the election of leaders. A
 * collision there only gives two jobs the same leader.
 */
uint64_t cw_job_hash(const char *label, uid_t uid);
