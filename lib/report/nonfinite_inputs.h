/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that fed NaN or infinity into an op before the trouble, if their tensor summaries were
 * requested. This alone is not a cause: with loss scaling it happens in a healthy job.
 */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/*
 * Ranks that we list, the earliest first: a bad value from one rank soon comes out at all of them.
 */
#define CW_NONFINITE_INPUTS_MAX 16u

/* New reference: an array, empty if no rank fed one; NULL = out of memory. */
json_t *cw_nonfinite_inputs_doc(const struct cw_snapshot *snap);

/*
 * The same list as sentences, from an incident: "rank 5 fed 3 NaN … into all_reduce #812 on dp, 14
 * s before the trouble was confirmed". incident may be any JSON value. New reference; NULL = out
 * of memory.
 */
json_t *cw_nonfinite_inputs_sentences(const json_t *incident);
