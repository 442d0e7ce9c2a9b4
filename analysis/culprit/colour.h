/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong colours of a split. NCCL takes any: a rank that gives the wrong one is in another group
 * than its program believes, and that group and the one it should be in are of other sizes. Uneven
 * splits are legal, so this proves nothing; beside calls that differ it tells where to look.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

/*
 * How many members the comm would have if its parent had been split evenly, where it has more; 0 =
 * it has not, it is no child, or not all groups of that split are known. O(comms).
 */
uint32_t colour_even_size(const struct cw_snapshot *snap, uint32_t comm);
