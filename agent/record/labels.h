/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment says about the process: its rank and job, as labels for people and as hints
 * for finding the job's leader; never an identity. Read once, when the record is made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

/* Fills the labels of a record's header. Once, before the header is valid. */
void cw_labels_read(struct cw_rec_header *header);

/*
 * The job's own time-out as its framework has it; taken for what the environment and arguments say,
 * but for COLLWATCH_JOB_TIMEOUT. Any thread, once there is a record.
 */
void cw_labels_tell_timeout(uint64_t timeout_ns);

/* NCCL_COMM_ID is set: unique ids are not unique. Any thread after cw_labels_read(). */
bool cw_labels_comm_id_is_constant(void);

/*
 * Hash of the user and the job's label, mixed into communicators' ids where unique ids are the same
 * everywhere. It need not withstand anybody: see cw_comm_id_of(). Not the key by which nodes find a
 * job (model/job_key.h).
 */
uint64_t cw_labels_job_key(void);
