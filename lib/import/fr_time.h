/* SPDX-License-Identifier: Apache-2.0 */
/* Determines when the dumps of a set were taken. */
#pragma once

#include <stdbool.h>

#include "import/flight_recorder.h"

/*
 * Sets three things: the snapshot's instants, the shift of each dump's times to them, and the
 * snapshot's patience with first calls, which is the job's own time-out. A dump does not contain
 * its own time. The file's time shows it, unless the file is a copy. Then we assume the event for
 * which PyTorch writes dumps: the oldest call has just timed out. Returns true if we had to
 * assume that.
 */
bool fr_find_now(struct cw_fr_set *set, struct cw_snapshot *snap);

/* Converts a time of the dump to the snapshot's clock. 0 stays unknown. */
int64_t fr_common_time(const struct cw_fr_dump *dump, int64_t time_ns);
