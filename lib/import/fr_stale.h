/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps of an earlier run that lie beside those of this one. */
#pragma once

#include "import/flight_recorder.h"

/*
 * Takes them out of the set, and adds a note that names their ranks: a rank that left no other dump
 * is one that cannot be seen. 0 or -ENOMEM.
 */
int fr_drop_stale(struct cw_fr_set *set);
