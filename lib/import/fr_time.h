/* SPDX-License-Identifier: Apache-2.0 */
/* Determines when the dumps of a set were taken. */
#pragma once

#include <stdbool.h>

#include "import/flight_recorder.h"

/*
 * Sets the snapshot's instants, the distance of each dump's times from them, and the snapshot's
 * patience with first calls, which is the job's own time-out. A dump does not contain its time. The
 * file's time shows it, unless the file is a copy. Then we assume the event that PyTorch writes
 * dumps for: the oldest call has just timed out. True if we had to assume that.
 */
bool fr_find_now(struct cw_fr_set *set, struct cw_snapshot *snap);

/* A time of the dump on the snapshot's clock; 0 stays unknown. */
int64_t fr_common_time(const struct cw_fr_dump *dump, int64_t time_ns);
