/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collective, or another call, that is blocked although no visible rank is missing at its gate:
 * all members are inside and the call does not end, invisible members may be missing, or the two
 * halves of a message do not fit. Pure.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

/* What a call that blocks the host is called in verdicts: CW_DETAIL_INIT, _SPLIT, … */
enum cw_detail blocked_collective_host_detail(uint32_t op_kind);

/* Fills *f for a gate at which nobody visible is missing. */
void blocked_collective_classify(const struct engine_context *s, uint32_t gate, struct finding *f);

/*
 * The one rank that is in every pair of the comm's members whose sizes differ, where there are
 * several such pairs: all others agree with each other. Else CW_SNAP_NONE.
 */
uint32_t blocked_collective_common_party(const struct engine_context *s, uint32_t comm);

/*
 * Looks for what the members of such a gate do not have in common, where nobody is to blame so far.
 * In the comm's first call that explains it; later it is worth mentioning. Returns 0 or -ENOMEM.
 */
int blocked_collective_compare_setup(struct engine_context *s, uint32_t gate, struct finding *f);
