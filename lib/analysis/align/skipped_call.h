/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A difference that is not one wrong field but one call too many or too few: from there on
 * everything the odd rank does is shifted, and nothing of it is wrong in itself.
 *
 * Pure, O(window).
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/*
 * How the calls of `odd` differ from those of `usual` from coll_seq `seq` on, where they first
 * differ: CW_DETAIL_MISSING (odd skipped one), _EXTRA (odd added one), _ORDER (odd swapped two), or
 * _NONE when the windows do not say so.
 */
enum cw_detail skipped_call_name(const struct cw_snap_member *usual,
				 const struct cw_snap_member *odd, uint64_t seq);
