/* SPDX-License-Identifier: Apache-2.0 */
/* Paths through the wait-for graph, which reports show to people. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/culprit/engine_context.h"

struct diagnosis;

/*
 * Sets seen[node] for all nodes that the ranks wait for, directly or indirectly. Returns 0 or
 * -ENOMEM.
 */
int chain_mark_downstream(struct engine_context *s, const uint32_t *ranks, uint32_t n, bool *seen);

/*
 * Fills v->chain with the waits from the furthest victim to the culprit, or once around the cycle
 * of a deadlock. The diagnosis must have searched upstream. Returns 0 or -ENOMEM.
 */
int chain_describe(struct diagnosis *diag);
