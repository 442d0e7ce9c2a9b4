/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the ends of the wait-for graph and the trouble at each end. Later steps choose the finding
 * to report, and judge its confidence. Pure; O(members + edges of the graph).
 */
#pragma once

#include "analysis/culprit/engine_context.h"

/* Fills s->findings. The graph and the alignments must be complete. Returns 0 or -ENOMEM. */
int culprit_find_all(struct engine_context *s);
