/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate that stays shut although nobody visible is missing at it: everybody is inside and the call
 * does not end, members that nobody sees may be missing, or two halves do not fit. Pure.
 */
#pragma once

#include "analysis/culprit/scene.h"

/* What a call that blocks the host is called in verdicts: CW_DETAIL_INIT, _SPLIT, … */
enum cw_detail shut_gate_host_detail(uint32_t op_kind);

/* Fills *f for a gate at which nobody visible is missing. */
void shut_gate_classify(const struct scene *s, uint32_t gate, struct finding *f);

/*
 * The one rank that is in every pair of the comm's members whose sizes differ, where there are
 * several such pairs: all others agree with each other. Else CW_SNAP_NONE.
 */
uint32_t shut_gate_common_party(const struct scene *s, uint32_t comm);

/*
 * Looks for what the members of such a gate do not have in common, where nobody is to blame so far.
 * In the comm's first call that explains it; later it is worth mentioning. Returns 0 or -ENOMEM.
 */
int shut_gate_compare_setup(struct scene *s, uint32_t gate, struct finding *f);
