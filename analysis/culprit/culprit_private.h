/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that classify the ends of the waiting, and nobody else. */
#pragma once

#include "analysis/culprit/scene.h"

/* The gate by which to describe what a missing rank owes. */
uint32_t culprit_gate_of(const struct scene *s, uint32_t rank);

/* What a host-blocking call is called in verdicts: CW_DETAIL_INIT, _SPLIT, … */
enum cw_detail culprit_host_detail(uint32_t op_kind);

/* A gate at which nobody visible is missing. */
void culprit_classify_gate(const struct scene *s, uint32_t gate, struct finding *f);

/*
 * Looks for what the members of such a gate do not have in common, where nobody is to blame so far.
 * In the comm's first call that explains it; later it is worth mentioning. Returns 0 or -ENOMEM.
 */
int culprit_compare_setup(struct scene *s, uint32_t gate, struct finding *f);

/* Per component of the graph its oldest gate, CW_SNAP_NONE where it has none. NULL = no memory. */
uint32_t *culprit_oldest_in_cycles(struct scene *s);

/* The cycle whose oldest gate is given. */
void culprit_classify_cycle(const struct scene *s, uint32_t oldest, struct finding *f);
