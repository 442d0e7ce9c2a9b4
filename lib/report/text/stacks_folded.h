/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a collwatch.stacks/1 in the folded format of flame-graph tools: one line per distinct
 * stack, its frames from the outermost to the innermost with semicolons between them, a blank, and
 * the number of threads with this stack. The first frame is the thread.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Prints nothing if stacks is NULL or another document. The document may be hostile. */
void cw_render_stacks_folded(FILE *out, const json_t *stacks);
