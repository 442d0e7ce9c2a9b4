/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that passed NaN or infinity into an op before the trouble. We know them only if the user
 * requested tensor summaries. Such an input alone is not a cause: loss scaling causes it in healthy
 * jobs.
 */
#pragma once

#include <jansson.h>

#include "model/arena.h"
#include "model/incident_list.h"
#include "model/snapshot.h"

/*
 * We list at most this many ranks, in order of time. A bad value from one rank soon reaches all
 * others.
 */
#define CW_NONFINITE_INPUTS_MAX 16u

/*
 * Adds the ranks of the snapshot that had such an input to the incident. They borrow from the
 * snapshot and the arena. Returns 0, or -1 if out of memory.
 */
int cw_nonfinite_inputs_collect(const struct cw_snapshot *snap, struct cw_arena *arena,
				struct cw_incident_facts *to);

/*
 * Formats the incident's inputs as sentences: "rank 5 fed 3 NaN … into all_reduce #812 on dp, 14 s
 * before the trouble was confirmed". New reference to an array of strings; NULL = out of memory.
 */
json_t *cw_nonfinite_inputs_sentences(const struct cw_incident_facts *incident);
