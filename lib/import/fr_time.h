/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out when the dumps of a set were taken. */
#pragma once

#include <stdbool.h>

#include "import/flight_recorder.h"

/*
 * Sets the instants of the snapshot, and the shift of each dump's times to them. Also sets the
 * snapshot's patience with first calls, which is the job's own time-out.
 *
 * A dump does not contain its own time. The file's time shows it, unless the file is a copy. For a
 * copy we assume the event for which PyTorch writes dumps: the oldest call has just timed out.
 * Returns true if we had to make this assumption.
 */
bool fr_find_now(struct cw_fr_set *set, struct cw_snapshot *snap);

/* Converts a time of the dump to the snapshot's clock. 0, an unknown time, stays 0. */
int64_t fr_common_time(const struct cw_fr_dump *dump, int64_t time_ns);
