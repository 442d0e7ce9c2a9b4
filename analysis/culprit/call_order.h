/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which order of two calls is the usual one? Asked where a deadlock's own ranks are equally many on
 * both sides. The other ranks of the job tell: they are in groups of the same kind (communicators
 * split from one parent by one call) and most have done one call before the other.
 *
 * Pure, O(members of the comms concerned).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/scene.h"

/*
 * Of two gates of collectives, the one most ranks outside of `component` pass first; CW_SNAP_NONE =
 * they do not say.
 */
uint32_t call_order_usual_gate(const struct scene *s, uint32_t component, uint32_t a, uint32_t b);

/*
 * Per rank: had it the choice of order that went wrong in this cycle? All ranks of the cycle, and
 * all members of every comm of it. Those outside the cycle (a root waits for fewer than wait for
 * it) show by where they wait which order is the usual one. In the scene's arena; NULL = -ENOMEM.
 */
bool *call_order_electors(struct scene *s, uint32_t component);

/*
 * Every send and receive of the cycle has been met by its other half, which stands behind the call
 * the peer waits in. Where one has not, it may never be: then the peer left it out, or somebody
 * made a call too many, and the cycle follows from that.
 */
bool call_order_is_posted(const struct scene *s, uint32_t component);

/*
 * The one rank without which nobody in the cycle would wait: all the others wait for it, or for
 * each other because of it. CW_SNAP_NONE in a ring, where that is true of everybody, and where the
 * cycle is large. Returns 0 or -ENOMEM.
 */
int call_order_centre(struct scene *s, uint32_t component, uint32_t *ret);
