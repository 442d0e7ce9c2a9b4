/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest sets of elements that meet each of several given sets ("hitting sets"). The given
 * sets are observations, such as "one of these devices is dead", and the elements are devices. A
 * smallest hitting set is the simplest explanation of all observations.
 *
 * Pure. The problem is hard in general, so the search has a budget. Real jobs have few
 * observations.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"

/* The maximum number of given sets: one bit of a word each. */
#define HITTING_SETS_MAX 64u

/* A given set: indices below n_elements. A set without elements is ignored. */
struct hitting_set {
	const uint32_t *elements;
	uint32_t n;
};

enum { HITTING_SETS_TOO_HARD = 1 };

/*
 * Sets is_in[i] for each element i that is in some smallest hitting set, and clears it for all
 * others. `is_in` has n_elements places. Returns 0, HITTING_SETS_TOO_HARD (too many sets, or the
 * budget is spent; `is_in` is then undefined), or -ENOMEM.
 */
int hitting_sets_smallest(const struct hitting_set *sets, uint32_t n, uint32_t n_elements,
			  struct cw_arena *a, bool *is_in);
