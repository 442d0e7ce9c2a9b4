/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises a difference that is one call too many or too few, instead of one wrong field. All
 * later calls of the odd rank are then shifted by one, although each of them is right in itself.
 *
 * Pure, O(window).
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/*
 * Returns how the calls of `odd` differ from those of `usual`. seq: the coll_seq of the first
 * difference.
 *
 *  - CW_DETAIL_MISSING: odd skipped a call.
 *  - CW_DETAIL_EXTRA: odd added a call.
 *  - CW_DETAIL_ORDER: odd swapped two calls.
 *  - CW_DETAIL_NONE: the windows show none of these.
 */
enum cw_detail skipped_call_name(const struct cw_snap_member *usual,
				 const struct cw_snap_member *odd, uint64_t seq);
