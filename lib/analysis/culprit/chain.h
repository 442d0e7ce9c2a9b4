/* SPDX-License-Identifier: Apache-2.0 */
/* Paths through the wait-for graph, as people follow them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/engine_context.h"

struct diagnosis;

/*
 * Sets seen[node] for everything the ranks wait for, directly or not. Returns 0 or -ENOMEM.
 */
int chain_mark_downstream(struct engine_context *s, const uint32_t *ranks, uint32_t n, bool *seen);

/*
 * Fills v->chain: from the victim furthest away to the culprit, or once around the cycle of a
 * deadlock. The diagnosis' upstream search must have been done. Returns 0 or -ENOMEM.
 */
int chain_describe(struct diagnosis *diag);
