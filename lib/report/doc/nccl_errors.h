/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors that NCCL itself reported, with their ranks and NCCL's own text. We know the asynchronous
 * error of a communicator if the program polls for it, as watchdogs do. Otherwise we use the result
 * of the last failed call on the communicator.
 */
#pragma once

#include <jansson.h>

#include "model/nccl_result.h"
#include "model/snapshot.h"

/*
 * We list at most this many different errors. Even of thousands of ranks, most have the same error.
 */
#define CW_NCCL_ERRORS_MAX 16u

/*
 * Returns an array of the errors in the snapshot. It is empty if NCCL reported none. New reference;
 * NULL = out of memory.
 */
json_t *cw_nccl_errors_doc(const struct cw_snapshot *snap);

/*
 * Formats the errors as sentences: "ranks 0-2: ncclRemoteError on comm tp: \"…\"". errors may be
 * any JSON value. New reference to an array of strings; NULL = out of memory.
 */
json_t *cw_nccl_error_sentences(const json_t *errors);
