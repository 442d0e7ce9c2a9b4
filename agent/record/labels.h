/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of the process: its rank and job, as the environment states them. Reports show them, and
 * the daemon uses them as hints to find the job's leader, never as an identity. We read them once,
 * when we create the record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

/* Fills the labels of a record's header. Call this once, before the header is valid. */
void cw_labels_read(struct cw_rec_header *header);

/*
 * Sets the job timeout that the framework itself reports. It replaces a timeout from environment
 * and arguments, but never COLLWATCH_JOB_TIMEOUT. Any thread, once the record exists.
 */
void cw_labels_set_job_timeout(uint64_t timeout_ns);

/*
 * True if NCCL_COMM_ID is set. NCCL's unique ids are then not unique. Any thread may call this
 * after cw_labels_read().
 */
bool cw_labels_comm_id_is_constant(void);

/*
 * Returns a hash of the user and the job's label. We mix it into communicator ids if all jobs share
 * one unique id. It need not resist attacks: see cw_comm_id_of(). It differs from the key that
 * nodes use to find a job (model/job_key.h).
 */
uint64_t cw_labels_job_key(void);
