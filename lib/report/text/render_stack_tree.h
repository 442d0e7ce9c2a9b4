/* SPDX-License-Identifier: Apache-2.0 */
/* A collwatch.stacks/1 as text: the positions of all ranks, the odd ones first. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "report/text.h"

/*
 * Without all_frames: only the main threads, interpreter and libraries folded, a few lines each.
 * Prints nothing for NULL or another document. Accepts hostile documents.
 */
void cw_render_stack_tree(const struct cw_text *t, const json_t *stacks, bool all_frames);
