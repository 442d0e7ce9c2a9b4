/* SPDX-License-Identifier: Apache-2.0 */
/* When the dumps of a set were taken. */
#pragma once

#include <stdbool.h>

#include "import/flight_recorder.h"

/*
 * Sets the snapshot's instants, how far the times of each dump are from them, and the snapshot's
 * patience with first calls, which is what the job itself allows them. A dump does not say when it
 * was taken. Its file's time does, unless it is that of a copy; then the dumps are taken for what
 * PyTorch writes them for: the oldest call has timed out. True when that had to be assumed.
 */
bool fr_find_now(struct cw_fr_set *set, struct cw_snapshot *snap);

/* A time of the dump on the snapshot's clock; 0 stays unknown. */
int64_t fr_common_time(const struct cw_fr_dump *dump, int64_t time_ns);
