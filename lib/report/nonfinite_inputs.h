/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that passed NaN or infinity into an op before the trouble. We know them only if the user
 * requested tensor summaries. Such an input alone is not a cause: loss scaling causes it in healthy
 * jobs.
 */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/*
 * We list at most this many ranks, in order of time. A bad value from one rank soon reaches all
 * others.
 */
#define CW_NONFINITE_INPUTS_MAX 16u

/*
 * Lists the ranks of the snapshot that had such an input; the array is empty if there are none. New
 * reference; NULL = out of memory.
 */
json_t *cw_nonfinite_inputs_doc(const struct cw_snapshot *snap);

/*
 * Formats the list of an incident as sentences: "rank 5 fed 3 NaN … into all_reduce #812 on dp, 14
 * s before the trouble was confirmed". incident may be any JSON value. New reference; NULL = out
 * of memory.
 */
json_t *cw_nonfinite_inputs_sentences(const json_t *incident);
