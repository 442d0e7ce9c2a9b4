/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors that NCCL itself reported, with their ranks: the asynchronous error of a communicator
 * (known if the program polls for it, as watchdogs do), else its last failed call, with NCCL's
 * own text.
 */
#pragma once

#include <jansson.h>

#include "model/nccl_result.h"
#include "model/snapshot.h"

/* Number of different errors that we list; of thousands of ranks most have the same one. */
#define CW_NCCL_ERRORS_MAX 16u

/* New reference: an array, empty if NCCL reported no error; NULL = out of memory. */
json_t *cw_nccl_errors_doc(const struct cw_snapshot *snap);

/*
 * The same as sentences: "ranks 0-2: ncclRemoteError on comm tp: \"…\"". errors may be any JSON
 * value. New reference: an array of sentences; NULL = out of memory.
 */
json_t *cw_nccl_error_sentences(const json_t *errors);
