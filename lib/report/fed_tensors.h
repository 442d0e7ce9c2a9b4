/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks fed NaN or infinity into an op before the trouble, as far as tensor summaries were
 * asked for. Not a cause by itself: with loss scaling it happens in a healthy job.
 */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/* Ranks told, the earliest first: what one of them feeds in comes out at all. */
#define CW_FED_TENSORS_MAX 16u

/* New reference: an array, empty when there was none; NULL = out of memory. */
json_t *cw_fed_tensors_doc(const struct cw_snapshot *snap);

/*
 * Those of an incident, for people: "rank 5 fed 3 NaN … into all_reduce #812 on dp, 14 s before the
 * trouble was confirmed". incident may be anything. New reference; NULL = out of memory.
 */
json_t *cw_fed_tensor_sentences(const json_t *incident);
