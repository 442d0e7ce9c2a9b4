/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises a difference that is one call too many or too few instead of one wrong field. All
 * later calls of the odd rank are shifted by one, although none of them is wrong in itself.
 *
 * Pure, O(window).
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/*
 * Names how the calls of `odd` differ from those of `usual`, starting at coll_seq `seq`, the first
 * difference. CW_DETAIL_MISSING: odd skipped a call. _EXTRA: odd added one. _ORDER: odd swapped
 * two. _NONE: the windows show none of these.
 */
enum cw_detail skipped_call_name(const struct cw_snap_member *usual,
				 const struct cw_snap_member *odd, uint64_t seq);
