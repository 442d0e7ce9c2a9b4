/* SPDX-License-Identifier: Apache-2.0 */
/* When the dumps of a set were taken. */
#pragma once

#include <stdbool.h>

#include "import/flight_recorder.h"

/*
 * Sets the snapshot's instants, and its patience with first calls to what the job itself allows
 * them. A dump does not say when it was taken. The file's time does, unless it is that of a copy;
 * then the dumps are taken for what PyTorch writes them for: the oldest call has timed out. True
 * when that had to be assumed.
 */
bool fr_find_now(const struct cw_fr_set *set, struct cw_snapshot *snap);
