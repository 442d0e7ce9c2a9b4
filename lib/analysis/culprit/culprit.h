/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of the waiting: what seems to be the matter at each. Which of them is told, and how sure
 * it is, is decided later. Pure; O(members + edges of the graph).
 */
#pragma once

#include "analysis/culprit/engine_context.h"

/* Fills s->findings. Returns 0 or -ENOMEM. */
int culprit_find_all(struct engine_context *s);
