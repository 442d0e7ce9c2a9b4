/* SPDX-License-Identifier: Apache-2.0 */
/* A collwatch.stacks/1 as text: where all ranks sit, the odd ones first. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "report/text.h"

/*
 * Without all_frames: the main threads, interpreter and libraries folded, a few lines each.
 * NULL or another document prints nothing. Hostile documents are fine.
 */
void cw_render_stack_tree(const struct cw_text *t, const json_t *stacks, bool all_frames);
