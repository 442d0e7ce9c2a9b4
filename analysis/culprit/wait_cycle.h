/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that wait for each other in a circle: a deadlock, or what follows from a send or receive
 * that was left out. Pure.
 */
#pragma once

#include "analysis/culprit/scene.h"

/* Per component of the graph its oldest gate, CW_SNAP_NONE where it has none. NULL = no memory. */
uint32_t *wait_cycle_oldest(struct scene *s);

/* Fills *f for the cycle whose oldest gate is given. */
void wait_cycle_classify(const struct scene *s, uint32_t oldest, struct finding *f);
