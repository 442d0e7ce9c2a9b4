/* SPDX-License-Identifier: Apache-2.0 */
/* Finds stale dumps: dumps of an earlier run beside those of the current run. */
#pragma once

#include "import/flight_recorder.h"

/*
 * Removes the stale dumps from the set, and adds a note with their ranks. A rank without another
 * dump becomes invisible.
 */
void fr_drop_stale(struct cw_fr_set *set);
