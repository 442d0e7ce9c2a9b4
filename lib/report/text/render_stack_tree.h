/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a collwatch.stacks/1: the positions of all ranks, branches with the fewest ranks first. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "report/text.h"

/*
 * Without all_frames, prints only the main threads, a few lines each, and folds interpreter and
 * library frames. Prints nothing if stacks is NULL or another document. The document may be
 * hostile.
 */
void cw_render_stack_tree(const struct cw_text *t, const json_t *stacks, bool all_frames);
