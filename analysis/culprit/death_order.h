/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several deaths came first, as far as their instants tell: on one node the kernel gives
 * them one clock, between nodes what is left of two clocks and of the way of a digest remains. What
 * comes surely after another death follows from it; what does not is a tie, unless its cause
 * decides: who sent the signal, and whom NCCL had told that a peer is gone. leader/epitaph_first.h
 * does the same for a whole job that is over.
 */
#pragma once

#include "analysis/culprit/apart.h"
#include "analysis/culprit/scene.h"

/* a ended before b, whoever tells of it. */
bool death_order_is_before(const struct cw_snap_rank *a, const struct cw_snap_rank *b);

/* Sets is_late in the findings of deaths. 0 or -ENOMEM. */
int death_order_mark(struct scene *s, const struct apart *apart);
