/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The route of a rank: the key under which a node's digests of one job travel to its leader
 * (docs/design.md section 8). It is a hash of a label that all ranks of a job share and of the
 * uid, so that one user's label never leads into another user's job.
 *
 * A label names, it does not decide: jobs are connected components of communicators, joined by the
 * leader. What matters here is that ranks that talk to each other get the same label.
 *
 * Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/record_layout.h"
#include "common/record_reader.h"

#define CW_JOB_LABEL_BYTES 160

/*
 * Writes the label of a process into buf[CW_JOB_LABEL_BYTES]: the job label of its environment,
 * else "master:HOST:PORT", else "comm:0x…" of its first root communicator (or of the one it is
 * just initialising). False: nothing names it yet; ask again at the next sample.
 */
bool cw_job_label(const struct cw_rec_header *header, const struct cw_record_comm *comms, size_t n,
		  char *buf);

/* Never 0. */
uint64_t cw_job_route(const char *label, uid_t uid);
