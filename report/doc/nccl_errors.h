/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL itself said went wrong, on which ranks: the asynchronous error of a communicator (known
 * where the program asks for it, as watchdogs do), else the last call of it that failed, with
 * NCCL's own text.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

/* Different errors told; of thousands of ranks most say the same. */
#define CW_NCCL_ERRORS_MAX 16u

/* For the number of a result without a name. */
#define CW_NCCL_RESULT_NAME_MAX 40u

/* ncclResult_t as nccl.h spells it, else its number in buf. Pure. */
const char *cw_nccl_result_name(int64_t result, char *buf, size_t len);

/* New reference: an array, empty when nothing was said; NULL = out of memory. */
json_t *cw_nccl_errors_doc(const struct cw_snapshot *snap);

/*
 * The same for people: "ranks 0-2: ncclRemoteError on comm tp: \"…\"". errors may be anything. New
 * reference: an array of sentences; NULL = out of memory.
 */
json_t *cw_nccl_error_sentences(const json_t *errors);
