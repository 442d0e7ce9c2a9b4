/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL itself said went wrong, on which ranks: the asynchronous error of a communicator (known
 * where the program asks for it, as watchdogs do), else the last call of it that failed, with
 * NCCL's own text.
 */
#pragma once

#include <jansson.h>

#include "model/nccl_result.h"
#include "model/snapshot.h"

/* Different errors told; of thousands of ranks most say the same. */
#define CW_NCCL_ERRORS_MAX 16u

/* New reference: an array, empty when nothing was said; NULL = out of memory. */
json_t *cw_nccl_errors_doc(const struct cw_snapshot *snap);

/*
 * The same for people: "ranks 0-2: ncclRemoteError on comm tp: \"…\"". errors may be anything. New
 * reference: an array of sentences; NULL = out of memory.
 */
json_t *cw_nccl_error_sentences(const json_t *errors);
