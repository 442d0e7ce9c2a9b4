/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that wait for each other in a circle: a deadlock, or what follows from a send or receive
 * that was left out. Pure.
 */
#pragma once

#include "analysis/culprit/scene.h"

/*
 * Nobody in it may be waiting for somebody outside alone. In a broadcast, a reduce, a gather or a
 * scatter, a member waits for some of those that have not come, nobody sees for whom.
 */
bool wait_cycle_is_closed(const struct scene *s, uint32_t component);

/* Per component of the graph its oldest gate, CW_SNAP_NONE where it has none. NULL = no memory. */
uint32_t *wait_cycle_oldest(struct scene *s);

/* Fills *f for the cycle whose oldest gate is given. */
void wait_cycle_classify(const struct scene *s, uint32_t oldest, struct finding *f);
