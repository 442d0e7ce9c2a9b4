/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors that NCCL itself reported, with their ranks and NCCL's own text. We know the asynchronous
 * error of a communicator if the program polls for it, as watchdogs do. Otherwise we use the result
 * of the last failed call on the communicator.
 */
#pragma once

#include <jansson.h>

#include "model/arena.h"
#include "model/incident_list.h"
#include "model/nccl_result.h"
#include "model/snapshot.h"

/*
 * We list at most this many different errors. Even of thousands of ranks, most have the same error.
 */
#define CW_NCCL_ERRORS_MAX 16u

/*
 * Adds the errors in the snapshot to the incident. They borrow from the snapshot and the arena.
 * Returns 0, or -1 if out of memory.
 */
int cw_nccl_errors_collect(const struct cw_snapshot *snap, struct cw_arena *arena,
			   struct cw_incident_facts *to);

/*
 * Formats the incident's errors as sentences: "ranks 0-2: ncclRemoteError on comm tp: \"…\"". New
 * reference to an array of strings; NULL = out of memory.
 */
json_t *cw_nccl_error_sentences(const struct cw_incident_facts *incident);
