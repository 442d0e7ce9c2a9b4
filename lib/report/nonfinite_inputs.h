/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that passed NaN or infinity into an op before the trouble. Known only if tensor
 * summaries were requested. Such an input alone is not a cause: with loss scaling it happens in
 * a healthy job.
 */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/*
 * We list at most this many ranks, the earliest first. A bad value from one rank soon reaches all
 * of them.
 */
#define CW_NONFINITE_INPUTS_MAX 16u

/*
 * Returns an array, which is empty if no rank had such an input. New reference; NULL = out
 * of memory.
 */
json_t *cw_nonfinite_inputs_doc(const struct cw_snapshot *snap);

/*
 * Formats the list of an incident as sentences: "rank 5 fed 3 NaN … into all_reduce #812 on dp, 14
 * s before the trouble was confirmed". incident may be any JSON value. New reference; NULL = out
 * of memory.
 */
json_t *cw_nonfinite_inputs_sentences(const json_t *incident);
