/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of the process: its rank and job, as the environment states them. Reports show the labels.
 * The daemon uses them as hints to find the job's leader, and never as an identity. We read the
 * labels once, when we create the record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

/*
 * Fills the labels in the header of a record. Call this function once, before the header is valid.
 */
void cw_labels_read(struct cw_rec_header *header);

/*
 * Fills the names and values of the process's NCCL_* variables. We read them once, so variables
 * that NCCL takes from its configuration file later are missing.
 */
void cw_labels_read_variables(struct cw_rec_variables *variables);

/*
 * Sets the job timeout that the framework itself reports. This timeout replaces one from
 * environment and arguments, but never COLLWATCH_JOB_TIMEOUT. Any thread, once the record exists.
 */
void cw_labels_set_job_timeout(uint64_t timeout_ns);

/*
 * Returns whether NCCL_COMM_ID is set. NCCL's unique ids are then not unique. Any thread may call
 * this function after cw_labels_read().
 */
bool cw_labels_comm_id_is_constant(void);

/*
 * Returns a hash of the user and the job's label. If all jobs share one unique id, we mix this hash
 * into communicator ids. It need not resist attacks: see cw_comm_id_of(). It is not the key by
 * which nodes find a job (model/job_key.h).
 */
uint64_t cw_labels_job_key(void);
