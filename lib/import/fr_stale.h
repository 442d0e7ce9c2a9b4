/* SPDX-License-Identifier: Apache-2.0 */
/* Finds dumps of an earlier run beside those of the current one. */
#pragma once

#include "import/flight_recorder.h"

/*
 * Removes them from the set, and adds a note with their ranks: a rank without another dump is
 * invisible. 0 or -ENOMEM.
 */
int fr_drop_stale(struct cw_fr_set *set);
